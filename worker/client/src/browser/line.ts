/** The line, read while a ticket is far from its turn: one answer for everybody, which costs the gateway next to nothing. */
import { answerWithin } from './send.js'
import type { Ticket } from './stored-ticket.js'

/** A turn that comes within this time is near: the ticket is redeemed, and held. In milliseconds, as all times here. */
export const NEAR_MS = 10_000
/** Half of the time that is left, within these bounds: workers may join, and others may leave. */
const READ_LEAST_MS = 2_000
const READ_MOST_MS = 10_000
/** A ticket is redeemed so often at least, to find out whether it is lost. */
export const REDEEM_EVERY_MS = 60_000
const ANSWER_MS = 10_000

/** How far a ticket is from its turn. */
export interface Distance {
  ahead: number
  /** Infinity while there are no workers. */
  leftMs: number
}

/** Reads how far it is. Undefined where the line does not say, and where its turn has come. Rejects with the reason of the signal. */
export async function distanceOf(
  { number, line = '' }: Ticket,
  { url, headers }: { url: string; headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<Distance | undefined> {
  const body = await answerWithin(ANSWER_MS, signal, async (signal) => {
    const response = await fetch(url, { headers, signal, redirect: 'manual' })
    return Object(response.status === 200 ? await response.json() : undefined)
  })
  const [serving, rate] = [Object(body?.serving)[line], Object(body?.rate)[line]]
  if (number === undefined || typeof serving !== 'number' || typeof rate !== 'number' || number <= serving)
    return undefined
  return { ahead: number - serving, leftMs: ((number - serving) * 1_000) / rate }
}

/** The pause until the line is read again. */
export function pauseFar(leftMs: number, random = Math.random): number {
  const half = (leftMs - NEAR_MS) / 2
  return Math.min(Math.max(half, READ_LEAST_MS), READ_MOST_MS) * (1 + random() / 4)
}
