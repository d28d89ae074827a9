/** How long a request is held, and the Retry-After of tickets. */

import { AWAY_MS } from '@spillway/queue/jobs/ticket'
import { createRefusalTimes, REFUSED_AT_ONCE_MS } from '@spillway/queue/wait/refusal-pace'

/**
 * Bounds of the predicted Retry-After. Clients must neither poll in a busy loop nor be away for long: workers may join and answer them
 * earlier than predicted, and a client that stays away gives its place up.
 */
const RETRY_AFTER_MIN_S = 1
const RETRY_AFTER_MAX_S = AWAY_MS / 1_000
/** Without workers: they may be back in a moment, and an early redemption only costs a request that is held. */
const RETRY_AFTER_UNKNOWN_S = 2

/** How long a request may be held, in milliseconds: as its client prefers, up to the limit. */
export function preferredWaitMs(preferredMs: number | undefined, limitMs: number): number {
  return Math.min(preferredMs ?? limitMs, limitMs)
}

/**
 * The rest of a wait when the job has been added, in milliseconds. The time before counts: it can be two seconds and more when Redis
 * had to be reconnected. 0, which means a ticket at once, stays 0; other waits stay above 0.
 */
export function remainingWaitMs(waitMs: number, elapsedMs: number): number {
  return waitMs === 0 ? 0 : Math.max(1, waitMs - elapsedMs)
}

/** The longest time that a ticket is paced, where requests are not held for longer, in milliseconds. */
const PACED_MS = 3_000

/**
 * Returns how long the next request is held that would get its ticket at once, in milliseconds. Tickets are paced as refusals are: a ticket
 * that is given at once invites clients that throw it away and log in anew. A held connection costs nothing, and its client may be answered.
 */
export function createTicketPace(
  { perSecond, waitLimitMs }: { perSecond(): number; waitLimitMs: number },
  now: () => number = () => performance.now(),
): () => number {
  const longestDelayMs = Math.max(waitLimitMs, PACED_MS)
  const dueAt = createRefusalTimes({ perSecond, leastDelayMs: 0, burstMs: REFUSED_AT_ONCE_MS, longestDelayMs })
  return () => {
    const nowMs = now()
    return Math.max(0, Math.ceil(dueAt(nowMs) - nowMs))
  }
}

/** In milliseconds. */
export interface TicketTimes {
  predictedMs: number
  /** How long a redemption will be held. */
  holdMs: number
  ticketLeftMs: number
}

/**
 * The Retry-After of a ticket, in seconds: one hold before the predicted answer, so that the answer finds its client there. It must end
 * before the ticket expires.
 */
export function ticketRetryAfterS({ predictedMs, holdMs, ticketLeftMs }: TicketTimes): number {
  const awayS = Math.ceil((predictedMs - holdMs) / 1_000)
  const expectedS = Number.isFinite(awayS) ? Math.min(RETRY_AFTER_MAX_S, awayS) : RETRY_AFTER_UNKNOWN_S
  const lastS = Math.floor(ticketLeftMs / 1_000) - 1
  return Math.max(RETRY_AFTER_MIN_S, Math.min(expectedS, lastS))
}

/** The headers schema of a route. Any text is valid: unknown preferences are ignored. */
export const PreferHeader = {
  type: 'object',
  properties: {
    Prefer: {
      type: 'string',
      description: '`wait=<seconds>`: hold the request for so long; `respond-async`: give a ticket at once (RFC 7240)',
    },
  },
} as const

interface WaitPreference {
  /** How long the client wants its request held, in milliseconds; undefined when it does not say. */
  waitMs: number | undefined
  /** The preferences that were applied, for Preference-Applied. */
  applied: string | undefined
}

/**
 * Parses `respond-async` and `wait=<seconds>`. Unknown and malformed preferences are ignored, as the RFC requires. Both together mean a
 * ticket after that wait (RFC 7240, 4.3).
 */
export function parsePrefer(header: string | string[] | undefined): WaitPreference {
  const preferences = [header ?? []].flat().join(',').toLowerCase().split(',')
  const names = preferences.map((preference) => preference.split(';')[0]?.trim() ?? '')
  const async = names.filter((name) => name === 'respond-async').slice(0, 1)
  for (const name of names) {
    const seconds = /^wait\s*=\s*"?(\d{1,6})"?$/.exec(name)?.[1]
    if (seconds !== undefined) {
      return { waitMs: Number(seconds) * 1_000, applied: [...async, `wait=${seconds}`].join(', ') }
    }
  }
  return { waitMs: async.length > 0 ? 0 : undefined, applied: async[0] }
}
