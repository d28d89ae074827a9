/**
 * Admission by the predicted wait, of gateways and applications. A request that can be answered
 * within its wait is held, within 0.6 of a ticket's life (LINE_SHARE) it gets a ticket at once. Any
 * other is refused before a job is made.
 *
 * A few new requests may overtake deferred jobs: a login soon after a spike is as quick as before
 * it, and a line of absent clients keeps nobody out. Deferred jobs age (see lanes.ts), and are all
 * answered before their tickets expire.
 *
 * Known devices have a lane of their own, which strangers cannot fill. It takes as many as begin
 * within a second at half of the capacity; further ones are admitted as any other request.
 */

import { LINE_SHARE } from '../jobs/lanes.js'
import type { Load } from '../wire/capacity.js'
import type { Lane } from '../wire/job.js'
import { OVERTAKING_MS } from './load-state.js'

export interface Admitted {
  lane: Lane
  /** How long to hold the request, in milliseconds; 0 for a ticket at once. */
  waitMs: number
}

/** The reason to refuse a job, and the seconds until a retry. */
export interface Refused {
  reason: 'too_many_waiting' | 'predicted_wait'
  retryAfterS: number
}

interface AdmissionOptions {
  load(): Load
  predictedWaitMs(lane: Lane): number
  maxOutstanding: number
  /** The life of tickets. */
  lifeMs: number
  now?: () => number
}

export class Admission {
  readonly #options: AdmissionOptions
  readonly #retryAfter: RetryAfter
  /** Jobs not yet in the queue. Without them, hundreds of one moment would find it empty. */
  readonly #coming = { waiting: 0, deferred: 0 }

  constructor(options: AdmissionOptions) {
    this.#options = options
    this.#retryAfter = new RetryAfter(options.now)
  }

  /** Admits a request, of a known device or not, that would be held for up to `waitMs`. */
  admit(waitMs: number, isKnown: boolean): Admitted | Refused {
    if (isKnown && this.#hasRoomForKnown()) return this.#admitTo('known', waitMs)
    // A job that cannot be answered within its wait is deferred: overtaking would not help it.
    const lane = this.#beginsSoon() && this.#predictedWaitMs('held') <= waitMs ? 'held' : 'deferred'
    return this.#refusalIn(lane) ?? this.#admitTo(lane, waitMs)
  }

  /** Refuses a request of no known device that `admit` would refuse, from memory. */
  refusalWhenFull(): Refused | undefined {
    return this.#refusalIn(this.#beginsSoon() ? 'held' : 'deferred')
  }

  /**
   * Refuses a call of an application that the next seconds could not answer within its wait. It
   * overtakes jobs with tickets.
   */
  refusalOfCall(waitMs: number): Refused | undefined {
    const load = this.#load()
    const { waiting, active, jobsPerSecond, linePerSecond } = load
    return this.#refusal(load, waiting + active, waiting + active, ((jobsPerSecond || linePerSecond) * waitMs) / 1_000)
  }

  /** Refuses a job with a ticket that could not be answered within LINE_SHARE of its life. */
  refusalOfTicket(lifeMs: number): Refused | undefined {
    const load = this.#load()
    const { waiting, active, deferred, linePerSecond } = load
    const before = waiting + active
    const room = (linePerSecond * lifeMs * LINE_SHARE) / 1_000
    return this.#refusal(load, before + deferred, before + aheadInLine(load), room)
  }

  /** When to come back where so many jobs are ahead, in seconds. */
  retryAfterS(): number {
    const { jobsPerSecond, waiting, active } = this.#options.load()
    return this.#retryAfter.seconds(jobsPerSecond, waiting + active)
  }

  /** Counts a job until the returned function says that it is in the queue or will not be. */
  underway(lane: Lane): () => void {
    const counted = lane === 'known' || lane === 'held' ? 'waiting' : 'deferred'
    this.#coming[counted] += 1
    return () => {
      this.#coming[counted] -= 1
    }
  }

  /** For a held request the line only takes places in Redis, and absent tickets take nothing. */
  #refusalIn(lane: 'held' | 'deferred'): Refused | undefined {
    if (lane === 'deferred') return this.refusalOfTicket(this.#options.lifeMs)
    const load = this.#load()
    return this.#refusal(load, load.waiting + load.active + inLine(load), 0, Number.MAX_VALUE)
  }

  /** As many jobs as there are slots are always let in, up to the cap of outstanding ones. */
  #refusal(load: Load, outstanding: number, ahead: number, room: number): Refused | undefined {
    const { maxOutstanding } = this.#options
    const limit = Math.min(maxOutstanding, Math.max(1, load.slots, room))
    const isFull = outstanding >= maxOutstanding
    if (ahead < limit && !isFull) return undefined
    return {
      reason: isFull ? 'too_many_waiting' : 'predicted_wait',
      retryAfterS: this.#retryAfter.seconds(load.jobsPerSecond, Math.max(1, Math.max(ahead, outstanding) + 1 - limit)),
    }
  }

  #admitTo(lane: Lane, waitMs: number): Admitted {
    return { lane, waitMs: this.#predictedWaitMs(lane) <= waitMs ? waitMs : 0 }
  }

  #load(): Load {
    const queue = this.#options.load()
    const { waiting, deferred } = this.#coming
    return { ...queue, waiting: queue.waiting + waiting, deferred: queue.deferred + deferred }
  }

  #predictedWaitMs(lane: Lane): number {
    const { waiting, deferred } = this.#coming
    const ahead = lane === 'known' ? 0 : waiting + (lane === 'held' ? 0 : deferred)
    const { load, predictedWaitMs } = this.#options
    return predictedWaitMs(lane) + (ahead === 0 ? 0 : (ahead * 1_000) / load().jobsPerSecond)
  }

  /** Whether a job that is added to the held lane now would begin soon. */
  #beginsSoon(): boolean {
    return this.#predictedWaitMs('held') <= this.#options.load().latencyMs + OVERTAKING_MS
  }

  /**
   * Whether a known device would wait for at most a second of others in its lane. Running jobs and
   * the one other job before it do not count: slow hashes alone take longer.
   */
  #hasRoomForKnown(): boolean {
    const { aheadOfKnown, jobsPerSecond } = this.#options.load()
    return jobsPerSecond > 0 && (aheadOfKnown - 1) * 1_000 <= OVERTAKING_MS * jobsPerSecond
  }
}

/**
 * Deferred jobs that may be done before one that joins the line. Clients who come back take turns
 * with the line: a hoard of tickets can take half of its room, and expires no ticket.
 */
function aheadInLine(load: Load): number {
  return inLine(load) + Math.min(load.returned + load.absent, inLine(load))
}

/** Deferred jobs that were never passed over. */
function inLine({ deferred, returned }: Load): number {
  return Math.max(0, deferred - returned)
}

const RETRY_AFTER_MAX_S = 60
/** Measured rates exceed the real capacity: fetching and delivering take time as well. */
const CAPACITY_OVERHEAD = 1.2
/** Assumed rest of a spike in seconds: until then new clients take what becomes free. */
const SPIKE_REMAINDER_S = 1

/** Retry-After of refusals: spreads retries over the time in which capacity becomes free. */
export class RetryAfter {
  readonly #now: () => number
  /** Retries that are still expected. */
  #expected = 0
  #countedAt: number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#countedAt = now()
  }

  /**
   * Seconds until there is capacity for one more request, behind those refused before.
   *
   * @param excess requests beyond the limit at the moment, this one included
   */
  seconds(perSecond: number, excess = 1): number {
    if (perSecond === 0) return RETRY_AFTER_MAX_S
    const elapsedS = (this.#now() - this.#countedAt) / 1_000
    const remaining = Math.max(0, this.#expected - elapsedS * perSecond)
    // No client is told to wait longer, so no further retries can be expected.
    this.#expected = Math.min(remaining, RETRY_AFTER_MAX_S * perSecond) + 1
    this.#countedAt = this.#now()
    const freeInS = ((excess + this.#expected) / perSecond) * CAPACITY_OVERHEAD + SPIKE_REMAINDER_S
    return Math.min(RETRY_AFTER_MAX_S, Math.ceil(freeInS))
  }
}
