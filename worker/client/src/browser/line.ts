/** The line, read while a ticket is far from its turn: one document for all clients. */
import { answerWithin, type HttpAnswer } from './send.js'
import type { Ticket } from './stored-ticket.js'

/** A turn within this time (ms) is near: the ticket is redeemed, and the request held. */
const NEAR_MS = 10_000
/** Half of the time that is left, within these bounds: workers may join, and others may leave. */
const READ_LEAST_MS = 2_000
const READ_MOST_MS = 10_000
/** A ticket is redeemed so often at least, to find out whether it is lost. */
const REDEEM_EVERY_MS = 60_000
const ANSWER_MS = 10_000

/** Whether its turn is still far after so many milliseconds. */
export function isFar(
  { number, etaAt = Number.POSITIVE_INFINITY }: Pick<Ticket, 'number' | 'etaAt'>,
  afterMs: number,
): boolean {
  return number !== undefined && etaAt - Date.now() > NEAR_MS + afterMs
}

/** Codes of lost tickets. `ticket_used` may also follow an answer that was lost. */
const LOST_TICKET = ['ticket_expired', 'ticket_used', 'ticket_lost', 'hash_replaced', 'invalid_ticket']

/** Whether the first request is to be sent again, where there still is one. */
export function isLost(code: string | undefined): boolean {
  return code !== undefined && LOST_TICKET.includes(code)
}

/** Where the line is read, as a GET. */
interface LineRequest {
  url: string
  headers: Readonly<Record<string, string>>
}

/** Watches the line until the turn is near, the line unknown, or the last redemption long ago. */
export async function untilNear(
  ticket: Pick<Ticket, 'number' | 'line'>,
  request: LineRequest,
  signal: AbortSignal,
  wait: (pauseMs: number, distance: Distance) => Promise<void>,
): Promise<void> {
  const redeemBy = performance.now() + REDEEM_EVERY_MS
  for (;;) {
    const distance = await distanceOf(ticket, request, signal)
    if (distance === undefined || distance.leftMs <= NEAR_MS || performance.now() > redeemBy) return
    await wait(pauseFar(distance.leftMs), distance)
  }
}

/** How far a ticket is from its turn. */
interface Distance {
  ahead: number
  /** Infinity while there are no workers, or the line is paused. */
  leftMs: number
  /** Whether operators have paused the line: it does not move. */
  paused: boolean
}

/** Undefined where the line does not say, and once its turn has come. */
async function distanceOf(
  { number, line = '' }: Pick<Ticket, 'number' | 'line'>,
  { url, headers }: LineRequest,
  signal: AbortSignal,
): Promise<Distance | undefined> {
  const body = await answerWithin(ANSWER_MS, signal, async (signal) => {
    const response = await fetch(url, { headers, signal, redirect: 'manual' })
    return Object(response.status === 200 ? await response.json() : undefined)
  })
  const [serving, rate] = [Object(body?.serving)[line], Object(body?.rate)[line]]
  if (number === undefined || typeof serving !== 'number' || typeof rate !== 'number' || number <= serving)
    return undefined
  const paused = Array.isArray(body?.paused) && body.paused.includes(line)
  return {
    ahead: number - serving,
    leftMs: paused ? Number.POSITIVE_INFINITY : ((number - serving) * 1_000) / rate,
    paused,
  }
}

/** The pause until the line is read again. */
export function pauseFar(leftMs: number, random = Math.random): number {
  const half = (leftMs - NEAR_MS) / 2
  return Math.min(Math.max(half, READ_LEAST_MS), READ_MOST_MS) * (1 + random() / 4)
}

// Pauses between requests, in milliseconds: never shorter than the gateway asks, and with jitter so
// that clients do not retry together.

/** Whatever the server says, requests are at least this far apart. */
export const LEAST_MS = 1_000
/** Longest pause before a redemption: an early one is harmless, one after the expiry is not. */
const TICKET_MOST_MS = 30_000
/** Of the backoff where nothing was told. */
const BACKOFF_MOST_MS = 10_000

/** @param failures requests in a row that got no ticket and no Retry-After */
export function pauseAfter(
  { status, retryAfterMs }: Pick<HttpAnswer, 'status' | 'retryAfterMs'>,
  failures: number,
  random = Math.random,
): number {
  if (retryAfterMs === undefined) {
    return LEAST_MS + random() * Math.min(LEAST_MS * 2 ** failures, BACKOFF_MOST_MS)
  }
  // Clients with tickets were told different times, clients that were refused together the same.
  return status === 202
    ? Math.min(Math.max(retryAfterMs, LEAST_MS), TICKET_MOST_MS) * (1 + random() / 4)
    : Math.max(retryAfterMs, LEAST_MS) * (1 + random() / 2)
}

/** Until `redeemAt` of a stored ticket (epoch ms). Bounded, as the clock may have changed. */
export function pauseUntil(redeemAt: number): number {
  return Math.min(Math.max(redeemAt - Date.now(), 0), TICKET_MOST_MS)
}

/** Rejects with the reason of the signal. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}
