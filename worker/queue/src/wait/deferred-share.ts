/**
 * The share of the capacity that deferred jobs get. As measured: held jobs overtake them, and workers do a little less than the rates that
 * they publish. As foreseen, where that is less: when workers join, new requests are held again, and overtake.
 */
import { DEFERRED_SHARE } from '../jobs/lanes.js'

/** How long a measurement counts, in milliseconds: its weight falls to a third. */
const MEMORY_MS = 2_500
/** A measurement of fewer jobs is filled up to this number with the expected share: jobs end in batches, so a few say little. */
const EVIDENCE_JOBS = 10
const SHARE_MIN = 0.25
/** Jobs end in batches, so a measurement may be above the whole by so much. */
const WHOLE = 1.25
/** Jobs that are passed over leave their lane without taking capacity. */
const SHARE_MAX = 4

/** A reading of the queue. */
export interface QueueReading {
  /** The number of the first deferred job; undefined without one. */
  first: number | undefined
  jobsPerSecond: number
  /** Jobs that wait or are in hand, and jobs that were finished since some time in the past. */
  outstanding: number
  finished: number
  /** Jobs in hand. */
  active: number
}

export interface DeferredShare {
  /** Ignores a reading with a number that is not finite. */
  observe(reading: QueueReading): void
  /**
   * 1 until it is known.
   *
   * @param overtaking whether new requests are held, by the capacity of the moment
   */
  current(overtaking: boolean): number
}

export function createDeferredShare(now: () => number = () => performance.now()): DeferredShare {
  let before: (QueueReading & { at: number }) | undefined
  /** With fading weights: deferred jobs that left their lane, and how many could have; all jobs that came, and in how many seconds. */
  let [gone, possible, came, seconds] = [0, 0, 0, 0]

  function foreseen(): number {
    const perSecond = before?.jobsPerSecond ?? 0
    if (perSecond === 0 || seconds === 0) return 1
    return Math.max(DEFERRED_SHARE, 1 - Math.max(0, came / seconds) / perSecond)
  }

  return {
    observe(reading) {
      const { first = 0, jobsPerSecond, outstanding, finished, active } = reading
      // Infinity or NaN would never fade from the sums.
      if (![first, jobsPerSecond, outstanding, finished, active].every(Number.isFinite)) return
      const at = now()
      const elapsedS = (at - (before?.at ?? at)) / 1_000
      const weight = Math.exp((-elapsedS * 1_000) / MEMORY_MS)
      if (before !== undefined) {
        came = came * weight + (reading.outstanding - before.outstanding) + (reading.finished - before.finished)
        seconds = seconds * weight + elapsedS
        const passed = (reading.first ?? 0) - (before.first ?? 0)
        // Without a deferred job at either end, the time between is not all theirs. Numbers begin again with an empty Redis server.
        if (reading.first !== undefined && before.first !== undefined && passed >= 0) {
          gone = gone * weight + passed
          // Workers that join take their first jobs at once, which is no sign of their speed.
          const taken = before.jobsPerSecond * elapsedS + active - before.active
          possible = possible * weight + Math.max(0, taken)
        }
      }
      before = { ...reading, at }
    },
    current(overtaking) {
      const expected = overtaking ? foreseen() : 1
      const missing = Math.max(0, EVIDENCE_JOBS - possible)
      const measured = (gone + missing * expected) / (possible + missing)
      const bounded = Math.min(SHARE_MAX, Math.max(SHARE_MIN, measured))
      return overtaking && bounded <= WHOLE ? Math.min(bounded, expected) : bounded
    },
  }
}
