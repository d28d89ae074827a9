/** What a gateway knows of the queue: as it was last read, with what was added here since, and what that means for the next job. */
import type { Load } from '../protocol/capacity.js'
import type { Lane } from '../protocol/job.js'

/**
 * For so long after Redis was away, the workers that were there before count as there: they publish again only a moment
 * later, and nobody is to be sent off with a ticket for that.
 */
const REUNION_MS = 1_500

export type Depth = Pick<Load, 'waiting' | 'deferred' | 'active'>
export type Capacity = Omit<Load, 'known' | keyof Depth>

const NO_CAPACITY: Capacity = { workers: 0, slots: 0, jobsPerSecond: 0, serviceMs: 0 }

export interface LoadState {
  current(): Load
  /** A job was added here since the last reading: it counts at once, not a quarter of a second later. */
  added(lane: Lane): void
  /** Milliseconds until a job added to this lane now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(lane: Lane): number
  /** Redis is being asked: what is added from now on may or may not be in its answer, and counts. */
  reading(): Reading
}

/** How a reading ends: one of the two is called, once. */
export interface Reading {
  succeeded(depth: Depth, live: Capacity): void
  failed(): void
}

export function createLoadState(now: () => number = () => performance.now()): LoadState {
  let load: Load = { known: false, waiting: 0, deferred: 0, active: 0, ...NO_CAPACITY }
  let addedSince = { held: 0, deferred: 0 }
  let lastCapacity = NO_CAPACITY
  let lastAwayAt = Number.NEGATIVE_INFINITY

  function current(): Load {
    return { ...load, waiting: load.waiting + addedSince.held, deferred: load.deferred + addedSince.deferred }
  }

  return {
    current,
    added(lane) {
      addedSince = { ...addedSince, [lane]: addedSince[lane] + 1 }
    },
    predictedWaitMs(lane) {
      const { waiting, deferred, active, jobsPerSecond, serviceMs } = current()
      if (jobsPerSecond === 0) return Number.POSITIVE_INFINITY
      const ahead = waiting + active + (lane === 'deferred' ? deferred : 0)
      return Math.max(serviceMs, ((ahead + 1) * 1_000) / jobsPerSecond)
    },
    reading() {
      const addedBefore = addedSince
      return {
        succeeded(depth, live) {
          if (live.slots > 0 || now() - lastAwayAt > REUNION_MS) lastCapacity = live
          load = { known: true, ...depth, ...lastCapacity }
          addedSince = {
            held: addedSince.held - addedBefore.held,
            deferred: addedSince.deferred - addedBefore.deferred,
          }
        },
        failed() {
          // What is not known for sure counts as gone; the next reading is a quarter of a second away.
          load = { ...load, known: false, ...NO_CAPACITY }
          // Nothing to keep before the first worker was seen.
          if (lastCapacity.slots > 0) lastAwayAt = now()
        },
      }
    },
  }
}
