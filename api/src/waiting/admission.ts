/**
 * Admission control by the predicted wait. A request that can be answered within its wait is held; one that can be answered within the
 * life of a ticket gets a ticket at once; any other is refused before it costs anything.
 *
 * A few new requests may overtake deferred jobs, so that a login soon after a spike is as quick as before it. Deferred jobs age (see
 * the client's lanes.ts), and are all answered before their tickets expire.
 *
 * Logins of known devices have a lane of their own, so that no stranger can fill the queue before them. It takes as many as begin within
 * a second at half of the capacity (see the client's lanes.ts); what comes beyond that, however many tokens someone has
 * collected, is admitted as any other request.
 */
import { OVERTAKING_MS } from '@spillway/client/passwords/load-state'
import { createOutstandingLimit } from '@spillway/client/passwords/outstanding-limit'
import { DEFERRED_SHARE } from '@spillway/client/queue/lanes'
import type { Lane, PasswordClient } from '@spillway/client/queue-client'
import { ApiError } from '../problems/errors.js'

/** The share of the capacity within a ticket's life that jobs may fill: the rest is left to overtaking jobs, and a tenth of this spare. */
const TICKETED_SHARE = 0.9 * DEFERRED_SHARE

/** An admitted request. */
export interface Admitted {
  lane: Lane
  /** How long to hold the request, in milliseconds; 0 for a ticket at once. */
  waitMs: number
}

export interface Admission {
  /** Refuses a request of no known device that `admit` would refuse, from memory. Throws `busy` with Retry-After. */
  refuseWhenFull(): void
  /** Admits a request, of a known device or not, that would be held for up to `waitMs`. Throws `busy` with Retry-After. */
  admit(waitMs: number, isKnown: boolean): Admitted
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
  const refusalOf = createOutstandingLimit(maxOutstanding, now)

  /**
   * Whether a known device that comes now would wait for no more than a second of others in its lane. What is in hand and the one other job
   * before it do not count: with one slot and slow hashes they alone take longer.
   */
  function hasRoomForKnown(): boolean {
    const { aheadOfKnown, jobsPerSecond } = passwords.load()
    return jobsPerSecond > 0 && (aheadOfKnown - 1) * 1_000 <= OVERTAKING_MS * jobsPerSecond
  }

  /** Whether a job that is added to the held lane now would begin soon. */
  function beginsSoon(): boolean {
    return passwords.predictedWaitMs('held') <= passwords.load().latencyMs + OVERTAKING_MS
  }

  /** A job that cannot be answered within its wait is deferred: overtaking would not help it. */
  function laneFor(waitMs: number): Lane {
    return beginsSoon() && passwords.predictedWaitMs('held') <= waitMs ? 'held' : 'deferred'
  }

  function admitTo(lane: Lane, waitMs: number): Admitted {
    return { lane, waitMs: passwords.predictedWaitMs(lane) <= waitMs ? waitMs : 0 }
  }

  function refuseWhenFull(): void {
    const refused = refusalOf(passwords.load(), ticketTtlMs * TICKETED_SHARE)
    if (refused !== undefined) throw new ApiError('busy', refused)
  }

  return {
    refuseWhenFull,
    admit(waitMs, isKnown) {
      if (isKnown && hasRoomForKnown()) return admitTo('known', waitMs)
      refuseWhenFull()
      return admitTo(laneFor(waitMs), waitMs)
    },
  }
}
