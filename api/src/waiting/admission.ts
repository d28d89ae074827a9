/**
 * Admission: what can be answered within its wait is held; what can be answered within the life of a ticket gets one at once;
 * what can be answered in neither is refused before it costs anything.
 *
 * A newcomer overtakes those who wait as long as only few others have just done the same, so that a login after a spike is as
 * quick as one before it. The overtaken age (see the worker's ageing.ts) and are all answered before their tickets expire.
 */
import type { Lane, Load, PasswordClient } from '@spillway/client'
import { createRetryAfter } from '../load-shedding/retry-after.js'
import { ApiError } from '../problems/errors.js'

/** Newcomers overtake while those among them would begin within this: so soon after a spike all is as if it had not been. */
const OVERTAKING_MS = 1_000

/** Of what workers can do within a ticket's life: half of it newcomers may take, and a tenth is to spare. */
const TICKETED_SHARE = 0.45

/** How a request that was let in goes on. */
export interface Admitted {
  lane: Lane
  /** How long to hold it, in milliseconds; 0 for a ticket at once. */
  waitMs: number
}

export interface Admission {
  /** For a request that begins something and would wait this long. Throws `busy`, with when to come back. */
  admit(waitMs: number): Admitted
}

export interface AdmissionLimits {
  ticketTtlMs: number
  maxOutstanding: number
}

export function createAdmission(
  passwords: Pick<PasswordClient, 'load' | 'predictedWaitMs'>,
  { ticketTtlMs, maxOutstanding }: AdmissionLimits,
  now: () => number = () => performance.now(),
): Admission {
  const retryAfterS = createRetryAfter(now)

  /** Without a worker, or when a worker alone would take longer than the wait, there is nothing to be quick for. */
  function laneFor(waitMs: number): Lane {
    const predictedMs = passwords.predictedWaitMs('held')
    const overtakes = predictedMs <= passwords.load().serviceMs + OVERTAKING_MS
    return overtakes && predictedMs <= waitMs ? 'held' : 'deferred'
  }

  /** How many jobs may be waiting and in hand. */
  function roomFor({ slots, jobsPerSecond }: Load): number {
    // Without a worker there is nothing to predict from. Tickets are given up to the cap: workers may be starting just now,
    // because jobs wait.
    if (jobsPerSecond === 0) return maxOutstanding
    return Math.min(maxOutstanding, Math.max(slots, (jobsPerSecond * ticketTtlMs * TICKETED_SHARE) / 1_000))
  }

  return {
    admit(waitMs) {
      const load = passwords.load()
      const outstanding = load.waiting + load.deferred + load.active
      const room = roomFor(load)
      if (outstanding >= room) {
        throw new ApiError('busy', {
          reason: outstanding >= maxOutstanding ? 'too_many_waiting' : 'predicted_wait',
          retryAfterS: retryAfterS(load.jobsPerSecond, outstanding + 1 - room),
        })
      }
      const lane = laneFor(waitMs)
      return { lane, waitMs: passwords.predictedWaitMs(lane) <= waitMs ? waitMs : 0 }
    },
  }
}
