/**
 * Admission: what cannot be answered in time is refused at once, before it costs anything. What can be answered within the
 * life of a ticket but not within the wait gets its ticket at once.
 */
import type { PasswordClient } from '@spillway/worker/client'
import { ApiError } from './errors.js'

const RETRY_AFTER_MAX_S = 60

export interface Admission {
  /** Throws `busy`, with when to come back. */
  check(): void
  /** Whether a job added now would probably be answered within this time. */
  answersWithin(waitMs: number): boolean
}

export function createAdmission(
  passwords: Pick<PasswordClient, 'load' | 'predictedWaitMs'>,
  limits: { ticketTtlMs: number; maxOutstanding: number },
): Admission {
  return {
    check() {
      const { waiting, active, workers } = passwords.load()
      const predictedMs = passwords.predictedWaitMs()
      const outstanding = waiting + active
      // Without a worker there is nothing to predict from: tickets are given, since one may be starting just now because jobs
      // wait, up to the cap.
      const inTime = workers === 0 || predictedMs <= limits.ticketTtlMs
      if (inTime && outstanding < limits.maxOutstanding) return
      const excessMs = workers === 0 ? RETRY_AFTER_MAX_S * 1_000 : predictedMs - limits.ticketTtlMs
      throw new ApiError('busy', {
        reason: inTime ? 'too_many_waiting' : 'predicted_wait',
        retryAfterS: Math.min(RETRY_AFTER_MAX_S, Math.max(1, Math.ceil(excessMs / 1_000))),
      })
    },
    answersWithin: (waitMs) => passwords.predictedWaitMs() <= waitMs,
  }
}
