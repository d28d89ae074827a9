/**
 * What a process expects of the queue: the last reading of Redis, the jobs that this process has
 * added since, how fast the line moves, and the capacity while no worker is known.
 */
import type { QueueState } from './capacity.js'
import { type Load, openWaitMs } from './order.js'
import { NO_CAPACITY, type TotalCapacity } from './wire/capacity.js'

/** The queue at one moment. */
export interface Reading extends QueueState {
  /** The capacity of all live workers together. */
  capacity: TotalCapacity
}

/** What everyone in line may know. */
export interface LineProgress {
  /** The number whose turn it is. It never goes back. */
  serving: number
  /** The last number that was given out, as far as is known here. */
  last: number
  /** Numbers a second; 0 without workers, or while the queue is paused. */
  rate: number
  /** Whether operators have paused the queue. */
  paused: boolean
}

const NOTHING: Reading = {
  paused: false,
  open: 0,
  line: 0,
  active: 0,
  first: undefined,
  last: 0,
  capacity: NO_CAPACITY,
}

type Waiting = 'open' | 'line'

export class Estimates {
  readonly #capacity: DecayingCapacity
  readonly #speed: LineSpeed
  #isKnown = false
  #reading = NOTHING
  #serving = 0
  /** The highest number that is known here. */
  #highest = 0
  /** Jobs of this process that have a place, and are not yet added. */
  readonly #coming = { open: 0, line: 0 }
  /** Jobs of this process that were added after the last reading began. */
  #added = { open: 0, line: 0 }

  constructor(now: () => number = () => performance.now()) {
    this.#capacity = new DecayingCapacity(now)
    this.#speed = new LineSpeed(now)
  }

  /** Begins a reading. Jobs that are added from now on count in addition to it, even if it includes them. */
  beginReading(): { succeeded(reading: Reading): void; failed(): void } {
    const before = { ...this.#added }
    return {
      succeeded: (reading) => {
        this.#added = { open: this.#added.open - before.open, line: this.#added.line - before.line }
        this.#take(reading)
      },
      // Workers of an unknown state count as gone until the next reading.
      failed: () => {
        this.#isKnown = false
        this.#reading = { ...this.#reading, capacity: NO_CAPACITY }
        this.#capacity.observe(0)
      },
    }
  }

  /**
   * Counts a job before it is added: simultaneous requests must not all find the queue empty. Only the
   * first call of `added` and `end` counts.
   */
  coming(where: Waiting, endedBefore: () => void = () => undefined): { added(): void; end(): void } {
    this.#coming[where] += 1
    let isComing = true
    const once = (then: () => void) => () => {
      if (!isComing) return
      isComing = false
      this.#coming[where] -= 1
      then()
    }
    const added = once(() => {
      this.#added[where] += 1
    })
    return { added, end: once(endedBefore) }
  }

  /** Records a number that a ticket got here, or with which a ticket was redeemed here. */
  numbered(number: number): void {
    this.#highest = Math.max(this.#highest, number)
  }

  /** The state of the queue, with the jobs of this process that Redis does not have yet. */
  load(): Load {
    const { paused, open, line, active, capacity } = this.#reading
    return {
      ...capacity,
      known: this.#isKnown,
      paused,
      open: open + this.#added.open + this.#coming.open,
      line: line + this.#added.line + this.#coming.line,
      active,
      linePerSecond: Math.max(this.#capacity.current(), line > 0 ? this.#speed.perSecond : 0),
    }
  }

  /** Milliseconds until the result of a waiting job; Infinity without workers, or while the queue is paused. */
  etaMs(number: number | undefined): number {
    if (number === undefined) return openWaitMs(this.load())
    const { serving, rate } = this.line()
    if (rate === 0) return Number.POSITIVE_INFINITY
    return Math.max(openWaitMs(this.load()), ((number - serving) * 1_000) / rate)
  }

  /** Milliseconds until all jobs that wait now, and one more, have results; Infinity as above. */
  predictedWaitMs(): number {
    const load = this.load()
    return openWaitMs({ ...load, open: load.open + load.line })
  }

  /** How far the line has come. */
  line(): LineProgress {
    const { paused, capacity } = this.#reading
    const rate = paused || capacity.jobsPerSecond === 0 ? 0 : this.#speed.perSecond
    return { serving: this.#serving, last: this.#highest, rate, paused }
  }

  #take(reading: Reading): void {
    const { first, line, last, capacity } = reading
    this.#isKnown = true
    this.#reading = reading
    this.#capacity.observe(capacity.linePerSecond)
    this.#highest = Math.max(this.#highest, last)
    // If nobody is in line, it is everybody's turn.
    this.#serving = Math.max(this.#serving, Math.min(this.#highest, line === 0 ? last : (first ?? 0)))
    this.#speed.observe(this.#serving, line > 0, capacity.jobsPerSecond)
  }
}

/** The shortest time over which speed is measured, in milliseconds. */
const MEASURED_MS = 1_000
/** The weight of the last measurement. */
const WEIGHT = 0.4
/** The smallest share of the capacity that the line is assumed to get, even without progress. */
const LEAST_SHARE = 1 / 4

/** Measures the numbers served each second. Skipped jobs count; open jobs take a part. */
class LineSpeed {
  readonly #now: () => number
  perSecond = 0
  #mark: { at: number; serving: number } | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  observe(serving: number, isMoving: boolean, jobsPerSecond: number): void {
    const at = this.#now()
    if (!isMoving || this.#mark === undefined) {
      this.perSecond = jobsPerSecond
      this.#mark = { at, serving }
      return
    }
    const elapsedMs = at - this.#mark.at
    if (elapsedMs < MEASURED_MS) return
    const measured = ((serving - this.#mark.serving) * 1_000) / elapsedMs
    this.perSecond += WEIGHT * (Math.max(measured, jobsPerSecond * LEAST_SHARE) - this.perSecond)
    this.#mark = { at, serving }
  }
}

// While no worker is known, the last known capacity counts, and decays. Restarted workers are back
// in a moment; workers of an autoscaler are not. A capacity of 0 would refuse everybody; with an
// undiminished capacity, tickets would expire.

const HALF_LIFE_MS = 15_000
/** Jobs a second before any worker is known, and long after the last: one core with argon2id. */
const UNKNOWN_PER_SECOND = 20

class DecayingCapacity {
  readonly #now: () => number
  #last: { perSecond: number; at: number } | undefined
  #isKnown = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** Takes the jobs a second of all live workers; 0 without workers. */
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
