/**
 * Admission by the predicted wait, as shared by gateways and applications. It computes how many jobs may be outstanding so that the last is
 * answered in time, and when to come back if there are more.
 */
import type { Load } from '../wire/capacity.js'

/** The reason to refuse a job, and the seconds until a retry. */
export interface Refused {
  reason: 'too_many_waiting' | 'predicted_wait'
  retryAfterS: number
}

/**
 * Returns the reason to refuse one more job that shall be answered within `budgetMs`, or undefined to let it in. As many jobs as there are
 * slots are always let in. Without a budget it is a job that begins at once: nothing in line counts, but jobs that wait or are in hand.
 */
export type OutstandingLimit = (load: Load, budgetMs?: number) => Refused | undefined

export function createOutstandingLimit(
  maxOutstanding: number,
  now: () => number = () => performance.now(),
): OutstandingLimit {
  const retryAfterS = createRetryAfter(now)

  function limitOf({ slots, linePerSecond }: Load, budgetMs: number): number {
    return Math.min(maxOutstanding, Math.max(1, slots, (linePerSecond * budgetMs) / 1_000))
  }

  return (load, budgetMs) => {
    const { waiting, active, deferred } = load
    const outstanding = waiting + active + (budgetMs === undefined ? 0 : deferred)
    const isFull = outstanding >= maxOutstanding
    const ahead = budgetMs === undefined ? outstanding : waiting + active + aheadInLine(load)
    const limit = limitOf(load, budgetMs ?? Number.MAX_VALUE)
    if (ahead < limit && !isFull) return undefined
    return {
      reason: isFull ? 'too_many_waiting' : 'predicted_wait',
      retryAfterS: retryAfterS(load.jobsPerSecond, Math.max(1, Math.max(ahead, outstanding) + 1 - limit)),
    }
  }
}

/**
 * Deferred jobs that may be done before one that joins the line. Clients who come back take turns with the line, so however many do, no
 * more go first than are in line: a hoard of tickets can take half of the line's room, and expires no ticket that was given.
 */
function aheadInLine({ deferred, returned, absent }: Load): number {
  const inLine = Math.max(0, deferred - returned)
  return inLine + Math.min(returned + absent, inLine)
}

/** Retry-After of refused requests: spreads the retries over the time in which the capacity for them becomes free. */
const RETRY_AFTER_MAX_S = 60
/** The measured rates exceed the real capacity slightly, because fetching and delivering a job takes time as well. */
const CAPACITY_OVERHEAD = 1.2
/** How long a spike is assumed to last from now, in seconds: until then, new clients take the capacity that becomes free. */
const SPIKE_REMAINDER_S = 1

/**
 * Seconds until there is capacity for one more request, behind the requests that were refused before.
 *
 * @param perSecond requests that can be served in a second
 * @param excess requests beyond the limit at the moment, this one included
 */
type RetryAfterS = (perSecond: number, excess?: number) => number

export function createRetryAfter(now: () => number = () => performance.now()): RetryAfterS {
  /** Retries that are still expected. */
  let expected = 0
  let countedAt = now()
  return (perSecond, excess = 1) => {
    if (perSecond === 0) return RETRY_AFTER_MAX_S
    const elapsedS = (now() - countedAt) / 1_000
    const remaining = Math.max(0, expected - elapsedS * perSecond)
    // No client is told to wait longer, so no further retries can be expected.
    expected = Math.min(remaining, RETRY_AFTER_MAX_S * perSecond) + 1
    countedAt = now()
    const freeInS = ((excess + expected) / perSecond) * CAPACITY_OVERHEAD + SPIKE_REMAINDER_S
    return Math.min(RETRY_AFTER_MAX_S, Math.ceil(freeInS))
  }
}
