/**
 * Admission by the predicted wait, as shared by gateways and applications. It computes how many jobs may be outstanding so that the last is
 * answered in time, and when to come back if there are more.
 */
import type { Load } from '../protocol/capacity.js'

/** The reason to refuse a job, and the seconds until a retry. */
export interface Refused {
  reason: 'too_many_waiting' | 'predicted_wait'
  retryAfterS: number
}

/**
 * Returns the reason to refuse one more job that shall be answered within `budgetMs`, or undefined to let it in. As many jobs as there are
 * slots are always let in.
 */
export type OutstandingLimit = (load: Load, budgetMs: number) => Refused | undefined

export function createOutstandingLimit(
  maxOutstanding: number,
  now: () => number = () => performance.now(),
): OutstandingLimit {
  const retryAfterS = createRetryAfter(now)

  function limitOf({ slots, linePerSecond }: Load, budgetMs: number): number {
    return Math.min(maxOutstanding, Math.max(1, slots, (linePerSecond * budgetMs) / 1_000))
  }

  return (load, budgetMs) => {
    const outstanding = load.waiting + load.deferred + load.active
    const limit = limitOf(load, budgetMs)
    // Those that were passed over take no time of workers, and yet their place in Redis.
    const isFull = outstanding + load.absent >= maxOutstanding
    if (outstanding < limit && !isFull) return undefined
    return {
      reason: isFull ? 'too_many_waiting' : 'predicted_wait',
      retryAfterS: retryAfterS(load.jobsPerSecond, Math.max(1, outstanding + 1 - limit)),
    }
  }
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
