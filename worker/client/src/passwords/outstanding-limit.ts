/**
 * Admission by the predicted wait, the part that gateways and applications share: how many jobs may be outstanding so that the last of
 * them is answered in time, and when to come back if there are more.
 */
import type { Load } from '../protocol/capacity.js'
import { createRetryAfter } from './retry-after.js'

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
