/** The load as a gateway knows it: the last reading of the queue plus the jobs added here since, and the wait predicted from both. */
import type { Load } from '../protocol/capacity.js'
import type { Lane } from '../protocol/job.js'

/**
 * How long after an outage of Redis the workers known before count as alive: they publish their capacity again only a moment later,
 * and requests should not get tickets meanwhile. Failures in that time do not prolong it.
 */
const OUTAGE_GRACE_MS = 1_500

export type Depth = Pick<Load, 'waiting' | 'deferred' | 'active'>
export type Capacity = Omit<Load, 'known' | keyof Depth>

const NO_CAPACITY: Capacity = { workers: 0, slots: 0, jobsPerSecond: 0, serviceMs: 0, latencyMs: 0 }

export interface LoadState {
  current(): Load
  /** Counts a job that was added here, at once instead of with the next reading. */
  added(lane: Lane): void
  /** Milliseconds until a job added to this lane now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(lane: Lane): number
  /** Begins a reading. Jobs added from now on are counted on top of it, whether or not it includes them. */
  reading(): Reading
}

/** Ends a reading: one of the two is called, once. */
export interface Reading {
  succeeded(depth: Depth, live: Capacity): void
  failed(): void
}

export function createLoadState(now: () => number = () => performance.now()): LoadState {
  let load: Load = { known: false, waiting: 0, deferred: 0, active: 0, ...NO_CAPACITY }
  let addedSince = { held: 0, deferred: 0 }
  let lastCapacity = NO_CAPACITY
  /** The last failure since workers were seen, up to the first reading after it, with which the grace begins. */
  let awayAt: number | undefined
  let graceEndsAt: number | undefined

  /** Whether a reading without workers may only mean that they have not published again. */
  function isInGrace(): boolean {
    if (awayAt === undefined) return false
    graceEndsAt ??= awayAt + OUTAGE_GRACE_MS
    return now() <= graceEndsAt
  }

  function current(): Load {
    return { ...load, waiting: load.waiting + addedSince.held, deferred: load.deferred + addedSince.deferred }
  }

  return {
    current,
    added(lane) {
      addedSince = { ...addedSince, [lane]: addedSince[lane] + 1 }
    },
    predictedWaitMs(lane) {
      const { waiting, deferred, active, jobsPerSecond, latencyMs } = current()
      if (jobsPerSecond === 0) return Number.POSITIVE_INFINITY
      const ahead = waiting + active + (lane === 'deferred' ? deferred : 0)
      return Math.max(latencyMs, ((ahead + 1) * 1_000) / jobsPerSecond)
    },
    reading() {
      const addedBefore = addedSince
      return {
        succeeded(depth, live) {
          if (live.slots > 0 || !isInGrace()) {
            lastCapacity = live
            awayAt = undefined
            graceEndsAt = undefined
          }
          load = { known: true, ...depth, ...lastCapacity }
          addedSince = {
            held: addedSince.held - addedBefore.held,
            deferred: addedSince.deferred - addedBefore.deferred,
          }
        },
        failed() {
          // Workers of unknown state count as gone until the next reading, a quarter of a second later.
          load = { ...load, known: false, ...NO_CAPACITY }
          // Before the first worker was seen there is no capacity to keep.
          if (lastCapacity.slots > 0 && graceEndsAt === undefined) awayAt = now()
        },
      }
    },
  }
}
