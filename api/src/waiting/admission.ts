/**
 * Admission control by the predicted wait. A request that can be answered within its wait is held. A request that can be answered within
 * the life of a ticket gets a ticket at once. Any other is refused before it costs anything.
 *
 * A few new requests may overtake deferred jobs. So a login soon after a spike is as quick as before it, and a line full of absent clients'
 * tickets keeps nobody out. Deferred jobs age (see the client's lanes.ts), and are all answered before their tickets expire.
 *
 * Logins of known devices have a lane of their own, so that no stranger can fill the queue before them. It takes as many as begin within a
 * second at half of the capacity (see the client's lanes.ts). Further ones are admitted as any other request, however many tokens someone
 * has collected.
 */

import { LINE_SHARE } from '@spillway/queue/jobs/lanes'
import type { Lane, Load, PasswordClient } from '@spillway/queue/queue-client'
import { OVERTAKING_MS } from '@spillway/queue/wait/load-state'
import { createOutstandingLimit } from '@spillway/queue/wait/outstanding-limit'
import { ApiError } from '../problems/errors.js'

/** An admitted request. */
export interface Admitted {
  lane: Lane
  /** How long to hold the request, in milliseconds; 0 for a ticket at once. */
  waitMs: number
}

export interface Admission {
  /** `busy` with Retry-After for a request of no known device that `admit` would refuse, from memory. */
  refusalWhenFull(): ApiError | undefined
  /** Admits a request, of a known device or not, that would be held for up to `waitMs`. Throws `busy` with Retry-After. */
  admit(waitMs: number, isKnown: boolean): Admitted
  /** A job of an admitted request counts from now on, until the returned function says that it is in the queue or will not be. */
  underway(lane: Lane): () => void
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
  /** Jobs that are not in the queue yet. Without them, hundreds that come in one moment would all find it empty, and be held for nothing. */
  const coming = { waiting: 0, deferred: 0 }

  function load(): Load {
    const queue = passwords.load()
    return { ...queue, waiting: queue.waiting + coming.waiting, deferred: queue.deferred + coming.deferred }
  }

  function predictedWaitMs(lane: Lane): number {
    const ahead = lane === 'known' ? 0 : coming.waiting + (lane === 'held' ? 0 : coming.deferred)
    const { jobsPerSecond } = passwords.load()
    return passwords.predictedWaitMs(lane) + (ahead === 0 ? 0 : (ahead * 1_000) / jobsPerSecond)
  }

  /**
   * Whether a known device that comes now would wait for no more than a second of others in its lane. Running jobs and the one other job
   * before it do not count: with one slot and slow hashes they alone take longer.
   */
  function hasRoomForKnown(): boolean {
    const { aheadOfKnown, jobsPerSecond } = passwords.load()
    return jobsPerSecond > 0 && (aheadOfKnown - 1) * 1_000 <= OVERTAKING_MS * jobsPerSecond
  }

  /** Whether a job that is added to the held lane now would begin soon. */
  function beginsSoon(): boolean {
    return predictedWaitMs('held') <= passwords.load().latencyMs + OVERTAKING_MS
  }

  /** A job that cannot be answered within its wait is deferred: overtaking would not help it. */
  function laneFor(waitMs: number): Lane {
    return beginsSoon() && predictedWaitMs('held') <= waitMs ? 'held' : 'deferred'
  }

  function admitTo(lane: Lane, waitMs: number): Admitted {
    return { lane, waitMs: predictedWaitMs(lane) <= waitMs ? waitMs : 0 }
  }

  /** Where there is no room. The line, and the tickets whose clients are absent, keep no request out that overtakes. */
  function refusal(isOvertaking: boolean): ApiError | undefined {
    const refused = isOvertaking ? refusalOf(load()) : refusalOf(load(), ticketTtlMs * LINE_SHARE)
    return refused && new ApiError('busy', refused)
  }

  return {
    refusalWhenFull: () => refusal(beginsSoon()),
    admit(waitMs, isKnown) {
      if (isKnown && hasRoomForKnown()) return admitTo('known', waitMs)
      const lane = laneFor(waitMs)
      const refused = refusal(lane === 'held')
      if (refused !== undefined) throw refused
      return admitTo(lane, waitMs)
    },
    underway(lane) {
      const counted = lane === 'known' || lane === 'held' ? 'waiting' : 'deferred'
      coming[counted] += 1
      return () => {
        coming[counted] -= 1
      }
    },
  }
}
