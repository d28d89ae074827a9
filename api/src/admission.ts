/**
 * Admission: what can be answered within its wait is held; what can be answered within the life of a ticket gets one at once;
 * what can be answered in neither is refused before it costs anything.
 */
import type { Lane, PasswordClient } from '@spillway/worker/client'
import { ApiError } from './errors.js'

const RETRY_AFTER_MAX_S = 60

/** How a request that was let in goes on. */
export interface Admitted {
  lane: Lane
  /** How long to hold it, in milliseconds; 0 for a deferred one. */
  waitMs: number
}

export interface Admission {
  /** For a request that begins something and would wait this long. Throws `busy`, with when to come back. */
  admit(waitMs: number): Admitted
  /** The lane for a job that someone would wait for this long: held when it could be done in time. */
  laneFor(waitMs: number): Lane
}

export interface AdmissionLimits {
  ticketTtlMs: number
  maxOutstanding: number
}

export function createAdmission(
  passwords: Pick<PasswordClient, 'load' | 'predictedWaitMs'>,
  { ticketTtlMs, maxOutstanding }: AdmissionLimits,
): Admission {
  /** Jobs refused here that were told when to come back, and are expected then. */
  let expected = 0
  let countedAt = performance.now()

  function laneFor(waitMs: number): Lane {
    return waitMs > 0 && passwords.predictedWaitMs('held') <= waitMs ? 'held' : 'deferred'
  }

  /** When there will be room for one more, after those who were sent away before. */
  function retryAfterS(jobsPerSecond: number, excessJobs: number): number {
    if (jobsPerSecond === 0) return RETRY_AFTER_MAX_S
    const elapsedS = (performance.now() - countedAt) / 1_000
    expected = Math.max(0, expected - elapsedS * jobsPerSecond) + 1
    countedAt = performance.now()
    return Math.min(RETRY_AFTER_MAX_S, Math.max(1, Math.ceil((excessJobs + expected) / jobsPerSecond)))
  }

  return {
    admit(waitMs) {
      const { waiting, deferred, active, jobsPerSecond } = passwords.load()
      const outstanding = waiting + deferred + active
      // Without a worker there is nothing to predict from. Tickets are given up to the cap: workers may be starting just now,
      // because jobs wait.
      const room = jobsPerSecond > 0 ? Math.min(maxOutstanding, (jobsPerSecond * ticketTtlMs) / 1_000) : maxOutstanding
      if (outstanding >= room) {
        throw new ApiError('busy', {
          reason: outstanding >= maxOutstanding ? 'too_many_waiting' : 'predicted_wait',
          retryAfterS: retryAfterS(jobsPerSecond, outstanding + 1 - room),
        })
      }
      const lane = laneFor(waitMs)
      return { lane, waitMs: lane === 'held' ? waitMs : 0 }
    },
    laneFor,
  }
}
