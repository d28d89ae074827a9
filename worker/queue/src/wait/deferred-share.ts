/**
 * The share of the capacity that deferred jobs get, as measured: held jobs overtake them. Where it
 * is less, as foreseen: when workers join, new requests are held again, and overtake.
 */
import { DEFERRED_SHARE } from '../jobs/lanes.js'

/** How long a measurement counts, in milliseconds: its weight falls to a third. */
const MEMORY_MS = 2_500
/** Measurements of fewer jobs are filled up with the expected share: jobs end in batches. */
const EVIDENCE_JOBS = 10
const SHARE_MIN = 0.25
/** Jobs end in batches, so a measurement may be above the whole by so much. */
const WHOLE = 1.25
/** Jobs that are passed over leave their lane without taking capacity. */
const SHARE_MAX = 4

interface QueueReading {
  /** The number of the first deferred job; undefined without one. */
  first: number | undefined
  jobsPerSecond: number
  /** Jobs that wait or are in hand, and jobs that were finished since some time in the past. */
  outstanding: number
  finished: number
  /** Jobs in hand. */
  active: number
}

export class DeferredShare {
  readonly #now: () => number
  #before: (QueueReading & { at: number }) | undefined
  // With fading weights: deferred jobs that left their lane, and how many could have; all jobs that
  // came, and in how many seconds.
  #gone = 0
  #possible = 0
  #came = 0
  #seconds = 0

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  observe(reading: QueueReading): void {
    const { first, jobsPerSecond, outstanding, finished, active } = reading
    // Infinity or NaN would never fade from the sums.
    if (![first ?? 0, jobsPerSecond, outstanding, finished, active].every(Number.isFinite)) return
    const at = this.#now()
    const before = this.#before
    this.#before = { ...reading, at }
    if (before === undefined) return
    const elapsedS = (at - before.at) / 1_000
    const weight = Math.exp((-elapsedS * 1_000) / MEMORY_MS)
    this.#came = this.#came * weight + (outstanding - before.outstanding) + (finished - before.finished)
    this.#seconds = this.#seconds * weight + elapsedS
    // Without a deferred job at either end, the time between is not all theirs. Numbers begin again
    // with an empty Redis server.
    if (first === undefined || before.first === undefined || first < before.first) return
    this.#gone = this.#gone * weight + first - before.first
    // Workers that join take their first jobs at once, which is no sign of their speed.
    const taken = before.jobsPerSecond * elapsedS + active - before.active
    this.#possible = this.#possible * weight + Math.max(0, taken)
  }

  /** The share; 1 until it is known. `overtaking`: whether new requests are held at the moment. */
  current(overtaking: boolean): number {
    const expected = overtaking ? this.#foreseen() : 1
    const missing = Math.max(0, EVIDENCE_JOBS - this.#possible)
    const measured = (this.#gone + missing * expected) / (this.#possible + missing)
    const bounded = Math.min(SHARE_MAX, Math.max(SHARE_MIN, measured))
    return overtaking && bounded <= WHOLE ? Math.min(bounded, expected) : bounded
  }

  #foreseen(): number {
    const perSecond = this.#before?.jobsPerSecond ?? 0
    if (perSecond === 0 || this.#seconds === 0) return 1
    return Math.max(DEFERRED_SHARE, 1 - Math.max(0, this.#came / this.#seconds) / perSecond)
  }
}
