/** The load as a gateway knows it: the last reading, jobs added since, and predictions. */

import type { Place } from '../jobs/ticket.js'
import type { Depth, Load, TotalCapacity } from '../wire/capacity.js'
import type { Lane } from '../wire/job.js'
import { DeferredShare } from './deferred-share.js'

/**
 * How long after an outage of Redis the workers known before count as alive: they publish again
 * only a moment later. Failures in that time do not prolong it.
 */
const OUTAGE_GRACE_MS = 1_500

/** Milliseconds within which a job must begin to overtake deferred ones. */
export const OVERTAKING_MS = 1_000

/** Jobs that each of a known device adds ahead of the next: itself, and one other. */
const AHEAD_BY_EACH = 2

/** As workers tell it: `linePerSecond` is 0 without workers, as the others are. */
const NO_CAPACITY: TotalCapacity = {
  workers: 0,
  slots: 0,
  jobsPerSecond: 0,
  linePerSecond: 0,
  serviceMs: 0,
  latencyMs: 0,
}

export interface Progress {
  /** Number of the first deferred job; undefined without one, and just after it was added. */
  first: number | undefined
  /** The last number that was given out. */
  last: number
  /** Whether the first is behind [false]: numbers go back to it from those that overtook it. */
  isBehind?: boolean
  /** Jobs that were finished since some time in the past. */
  finished: number
}

/** Ends a reading: one of the two is called, once. */
export interface Reading {
  succeeded(depth: Depth, live: TotalCapacity, progress?: Progress): void
  failed(): void
}

export class LoadState {
  readonly #now: () => number
  readonly #deferredShare: DeferredShare
  readonly #lineCapacity: LineCapacity
  readonly #progress = new LineProgress()
  #load: Load = {
    known: false,
    ...{ waiting: 0, deferred: 0, active: 0, absent: 0, returned: 0, aheadOfKnown: 1 },
    ...NO_CAPACITY,
  }
  #addedSince = { known: 0, held: 0, deferred: 0 }
  #lastCapacity = NO_CAPACITY
  /** The last failure since workers were seen. */
  #awayAt: number | undefined
  /** Set once an outage, by the first reading after it. */
  #graceEndsAt: number | undefined

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#deferredShare = new DeferredShare(now)
    this.#lineCapacity = new LineCapacity(now)
  }

  current(): Load {
    const load = this.#load
    const { known, held, deferred } = this.#addedSince
    return {
      ...load,
      linePerSecond: this.#lineCapacity.current(),
      waiting: load.waiting + known + held,
      deferred: load.deferred + deferred,
      aheadOfKnown: load.aheadOfKnown + known * AHEAD_BY_EACH,
    }
  }

  /** Counts a job that was added here, at once instead of with the next reading. */
  added(lane: Lane): void {
    this.#addedSince[lane === 'behind' ? 'deferred' : lane] += 1
  }

  /** {@link predictWaitMs} of the current load. */
  predictedWaitMs(lane: Lane): number {
    return predictWaitMs(this.current(), lane)
  }

  /** The same with so many jobs ahead, by the share that deferred jobs get. */
  expectedWaitMs({ held, deferred }: Place): number {
    const { jobsPerSecond, latencyMs, paused } = this.#load
    if (paused) return Number.POSITIVE_INFINITY
    return Math.max(latencyMs, ((held + 1 + deferred / this.#shareOfDeferred()) * 1_000) / jobsPerSecond)
  }

  line(): Line {
    const { paused = false, jobsPerSecond } = this.#load
    return { ...this.#progress.current(), paused, perSecond: paused ? 0 : jobsPerSecond * this.#shareOfDeferred() }
  }

  numbered(number: number): void {
    this.#progress.numbered(number)
  }

  /** Begins a reading. Jobs added from now on count on top of it, even if it includes them. */
  reading(): Reading {
    const addedBefore = { ...this.#addedSince }
    return {
      succeeded: (depth, live, progress) => {
        this.#succeeded(depth, live, progress)
        for (const lane of ['known', 'held', 'deferred'] as const) this.#addedSince[lane] -= addedBefore[lane]
      },
      failed: () => {
        // Workers of unknown state count as gone until the next reading.
        this.#load = { ...this.#load, known: false, ...NO_CAPACITY }
        this.#lineCapacity.observe(0)
        this.#awayAt = this.#now()
      },
    }
  }

  #succeeded(depth: Depth, live: TotalCapacity, progress: Progress | undefined): void {
    if (live.slots > 0 || !this.#isInGrace()) {
      this.#lastCapacity = live
      this.#awayAt = undefined
      this.#graceEndsAt = undefined
    }
    this.#load = { known: true, ...depth, ...this.#lastCapacity }
    const { linePerSecond, jobsPerSecond } = this.#lastCapacity
    this.#lineCapacity.observe(linePerSecond)
    if (progress === undefined) return
    const { first, isBehind, last, finished } = progress
    const { waiting, deferred, active, absent, returned } = depth
    this.#progress.observe(last, deferred - returned, first)
    const outstanding = waiting + deferred + active + absent
    this.#deferredShare.observe({ first: isBehind ? undefined : first, jobsPerSecond, outstanding, finished, active })
  }

  /** Whether a reading without workers may only mean that they have not published again. */
  #isInGrace(): boolean {
    if (this.#awayAt === undefined) return false
    this.#graceEndsAt ??= this.#awayAt + OUTAGE_GRACE_MS
    return this.#now() <= this.#graceEndsAt
  }

  #shareOfDeferred(): number {
    // Above the limit requests overtake no more, until it is reached again a moment later.
    const load = this.#load
    return this.#deferredShare.current(predictWaitMs(load, 'held') <= load.latencyMs + 2 * OVERTAKING_MS)
  }
}

/** Jobs that are done before one that is added to this lane. */
export function jobsAhead({ waiting, deferred, active, aheadOfKnown }: Load, lane: Lane): number {
  if (lane === 'known') return active + Math.min(waiting, aheadOfKnown)
  return active + waiting + (lane === 'held' ? 0 : deferred)
}

/** Milliseconds to the answer of a job added now; Infinity without workers, or when paused. */
export function predictWaitMs(load: Load, lane: Lane): number {
  const { jobsPerSecond, latencyMs, paused } = load
  if (paused) return Number.POSITIVE_INFINITY
  // Infinity without a capacity.
  return Math.max(latencyMs, ((jobsAhead(load, lane) + 1) * 1_000) / jobsPerSecond)
}

// What the line can count on while no worker is known: the capacity of the last ones, less with
// each second. Late workers are back in a moment, an autoscaler's are not there yet. Assuming none
// would refuse everybody; assuming all would give tickets that expire.

/** In milliseconds. */
const HALF_LIFE_MS = 15_000
/** Jobs a second before any worker is known, and long after the last: a core of argon2id. */
const UNKNOWN_PER_SECOND = 20

export class LineCapacity {
  readonly #now: () => number
  #last: { perSecond: number; at: number } | undefined
  #isKnown = false

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Takes jobs a second of live workers over the life of a ticket; 0 without workers. */
  observe(perSecond: number): void {
    this.#isKnown = perSecond > 0
    if (this.#isKnown) this.#last = { perSecond, at: this.#now() }
  }

  /** Jobs a second; never 0. */
  current(): number {
    if (this.#last === undefined) return UNKNOWN_PER_SECOND
    const { perSecond, at } = this.#last
    if (this.#isKnown) return perSecond
    const decayed = perSecond * 0.5 ** ((this.#now() - at) / HALF_LIFE_MS)
    return Math.max(Math.min(perSecond, UNKNOWN_PER_SECOND), decayed)
  }
}

/**
 * What everyone in line may know. It never runs backwards: where Redis lost its data, numbers
 * continue from the last one that this process knows.
 */
export interface Line {
  /** The number whose turn it is: 0 before the first. */
  serving: number
  /** The last number that was given out, as far as is known here. */
  last: number
  /** Numbers a second, absent ones included; 0 without workers, or when paused. */
  perSecond: number
  /** Whether operators have paused the queue. */
  paused: boolean
}

/** Numbers that no gateway is ahead of another by. */
const RESET_BY = 1_000_000_000

class LineProgress {
  #serving = 0
  #last = 0

  /** @param inLine deferred jobs that were never passed over */
  observe(last: number, inLine: number, first = 0): void {
    // A number that no line reaches was somebody's lie, and Redis counts from 1 again. Where Redis
    // lost its data, numbers go on.
    if (last > 0 && last < this.#last - RESET_BY) [this.#serving, this.#last] = [0, 0]
    this.#last = Math.max(this.#last, last)
    // With nobody in line it is everybody's turn. The number of a job is in Redis, too.
    this.#serving = Math.max(this.#serving, Math.min(this.#last, inLine <= 0 ? last : first))
  }

  numbered(number: number): void {
    this.#last = Math.max(this.#last, number)
  }

  current(): Pick<Line, 'serving' | 'last'> {
    return { serving: this.#serving, last: this.#last }
  }
}
