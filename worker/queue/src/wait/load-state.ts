/** The load as a gateway knows it: the last reading of the queue plus the jobs added here since, and the wait predicted from both. */

import type { Place } from '../jobs/ticket.js'
import type { Load, TotalCapacity } from '../wire/capacity.js'
import type { Lane } from '../wire/job.js'
import { createDeferredShare } from './deferred-share.js'

/**
 * How long after an outage of Redis the workers known before count as alive: they publish their capacity again only a moment later,
 * and requests should not get tickets meanwhile. Failures in that time do not prolong it.
 */
const OUTAGE_GRACE_MS = 1_500

/** A request may overtake deferred jobs if its job would begin within this time, in milliseconds. */
export const OVERTAKING_MS = 1_000

/** Waiting jobs that each job of a known device adds to those ahead of the next one: itself, and one other (see lanes.ts). */
const AHEAD_BY_EACH = 2

export type Depth = Pick<Load, 'paused' | 'waiting' | 'deferred' | 'active' | 'absent' | 'returned' | 'aheadOfKnown'>
/** As workers tell it: `linePerSecond` is 0 without workers, as the others are. */
const NO_CAPACITY: TotalCapacity = {
  workers: 0,
  slots: 0,
  jobsPerSecond: 0,
  linePerSecond: 0,
  serviceMs: 0,
  latencyMs: 0,
}

export interface LoadState {
  current(): Load
  /** Counts a job that was added here, at once instead of with the next reading. */
  added(lane: Lane): void
  /** Milliseconds until a job added to this lane now would be answered; Infinity when no worker is alive, or the queue is paused. */
  predictedWaitMs(lane: Lane): number
  /** The same for a job with so many ahead of it, by the share of the capacity that deferred jobs get. */
  expectedWaitMs(ahead: Place): number
  /** How far the line has come. */
  line(): Line
  /** A number was given out here. */
  numbered(number: number): void
  /** Begins a reading. Jobs added from now on are counted on top of it, whether or not it includes them. */
  reading(): Reading
}

/** How far the queue has come. */
export interface Progress extends Pick<LineReading, 'first' | 'last'> {
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

export function createLoadState(now: () => number = () => performance.now()): LoadState {
  let load: Load = {
    known: false,
    ...{ waiting: 0, deferred: 0, active: 0, absent: 0, returned: 0, aheadOfKnown: 1 },
    ...NO_CAPACITY,
  }
  let addedSince = { known: 0, held: 0, deferred: 0 }
  const deferredShare = createDeferredShare(now)
  const lineCapacity = createLineCapacity(now)
  const progressOfLine = createLineProgress()
  let lastCapacity = NO_CAPACITY
  /** The last failure since workers were seen. */
  let awayAt: number | undefined
  /** Set once an outage, by the first reading after it. */
  let graceEndsAt: number | undefined

  /** Whether a reading without workers may only mean that they have not published again. */
  function isInGrace(): boolean {
    if (awayAt === undefined) return false
    graceEndsAt ??= awayAt + OUTAGE_GRACE_MS
    return now() <= graceEndsAt
  }

  function shareOfDeferred(): number {
    // Above the limit requests overtake no more, until it is reached again a moment later.
    return deferredShare.current(predictWaitMs(load, 'held') <= load.latencyMs + 2 * OVERTAKING_MS)
  }

  function current(): Load {
    const { known, held, deferred } = addedSince
    return {
      ...load,
      linePerSecond: lineCapacity.current(),
      waiting: load.waiting + known + held,
      deferred: load.deferred + deferred,
      aheadOfKnown: load.aheadOfKnown + known * AHEAD_BY_EACH,
    }
  }

  return {
    current,
    added(lane) {
      const counted = lane === 'behind' ? 'deferred' : lane
      addedSince = { ...addedSince, [counted]: addedSince[counted] + 1 }
    },
    predictedWaitMs: (lane) => predictWaitMs(current(), lane),
    expectedWaitMs({ held, deferred }) {
      const { jobsPerSecond, latencyMs, paused } = load
      if (paused) return Number.POSITIVE_INFINITY
      return Math.max(latencyMs, ((held + 1 + deferred / shareOfDeferred()) * 1_000) / jobsPerSecond)
    },
    line() {
      const { paused = false, jobsPerSecond } = load
      return { ...progressOfLine.current(), paused, perSecond: paused ? 0 : jobsPerSecond * shareOfDeferred() }
    },
    numbered: progressOfLine.numbered,
    reading() {
      const addedBefore = addedSince
      return {
        succeeded(depth, live, progress) {
          if (live.slots > 0 || !isInGrace()) {
            lastCapacity = live
            awayAt = undefined
            graceEndsAt = undefined
          }
          load = { known: true, ...depth, ...lastCapacity }
          lineCapacity.observe(lastCapacity.linePerSecond)
          if (progress !== undefined) {
            const { first, isBehind, last, finished } = progress
            progressOfLine.observe({ first, last, inLine: depth.deferred - depth.returned })
            const { waiting, deferred, active, absent } = depth
            const outstanding = waiting + deferred + active + absent
            const measured = isBehind ? undefined : first
            deferredShare.observe({ first: measured, jobsPerSecond: load.jobsPerSecond, outstanding, finished, active })
          }
          addedSince = {
            known: addedSince.known - addedBefore.known,
            held: addedSince.held - addedBefore.held,
            deferred: addedSince.deferred - addedBefore.deferred,
          }
        },
        failed() {
          // Workers of unknown state count as gone until the next reading, a quarter of a second later.
          load = { ...load, known: false, ...NO_CAPACITY }
          lineCapacity.observe(0)
          awayAt = now()
        },
      }
    },
  }
}

/** Jobs that are done before one that is added to this lane. */
export function jobsAhead({ waiting, deferred, active, aheadOfKnown }: Load, lane: Lane): number {
  if (lane === 'known') return active + Math.min(waiting, aheadOfKnown)
  return active + waiting + (lane === 'held' ? 0 : deferred)
}

/** Milliseconds until a job added to this lane would be answered; Infinity when no worker is alive, or the queue is paused. */
export function predictWaitMs(load: Load, lane: Lane): number {
  const { jobsPerSecond, latencyMs, paused } = load
  if (paused) return Number.POSITIVE_INFINITY
  // Infinity without a capacity.
  return Math.max(latencyMs, ((jobsAhead(load, lane) + 1) * 1_000) / jobsPerSecond)
}

// The capacity that the line can count on while no worker is known: the capacity of the last ones, less with each second. Workers that
// published late are back in a moment, and those that an autoscaler starts are not there yet. A gateway that assumed no capacity would
// refuse everybody. A gateway that assumed any capacity would give tickets that expire.

/** In milliseconds. */
const HALF_LIFE_MS = 15_000
/** What is counted on before any worker was known, and after all have long been gone, in jobs a second: about a core of argon2id. */
const UNKNOWN_PER_SECOND = 20

interface LineCapacity {
  /** Takes a reading: what live workers can do together over the life of a ticket, in jobs a second; 0 without workers. */
  observe(perSecond: number): void
  /** Jobs a second; never 0. */
  current(): number
}

export function createLineCapacity(now: () => number = () => performance.now()): LineCapacity {
  let last: { perSecond: number; at: number } | undefined
  let isKnown = false
  return {
    observe(perSecond) {
      isKnown = perSecond > 0
      if (isKnown) last = { perSecond, at: now() }
    },
    current() {
      if (last === undefined) return UNKNOWN_PER_SECOND
      const { perSecond, at } = last
      if (isKnown) return perSecond
      return Math.max(Math.min(perSecond, UNKNOWN_PER_SECOND), perSecond * 0.5 ** ((now() - at) / HALF_LIFE_MS))
    },
  }
}

// How far a line has come: the number of its first job. It never runs backwards, not even when Redis lost its data: new numbers then
// continue from the last one that this process knows.

/** What everyone in line may know. */
export interface Line {
  /** The number whose turn it is: 0 before the first. */
  serving: number
  /** The last number that was given out, as far as is known here. */
  last: number
  /** Numbers a second, those included that are passed over; 0 without workers, and while the queue is paused. */
  perSecond: number
  /** Whether operators have paused the queue. */
  paused: boolean
}

interface LineReading {
  /** The last number that was given out. */
  last: number
  /** The number of the first deferred job; undefined without one, and for a moment after it was added. */
  first: number | undefined
  /** Deferred jobs that were never passed over. */
  inLine: number
}

/** Numbers that no gateway is ahead of another by. */
const RESET_BY = 1_000_000_000

interface LineProgress {
  observe(reading: LineReading): void
  /** This process gave out a number. */
  numbered(number: number): void
  current(): Pick<Line, 'serving' | 'last'>
}

function createLineProgress(): LineProgress {
  let [serving, last] = [0, 0]
  return {
    observe(reading) {
      // A number that no line reaches was somebody's lie, and Redis counts from 1 again. Where Redis lost its data, numbers go on.
      if (reading.last > 0 && reading.last < last - RESET_BY) [serving, last] = [0, 0]
      last = Math.max(last, reading.last)
      // With nobody in line it is everybody's turn. The number of a job is in Redis, too.
      serving = Math.max(serving, Math.min(last, reading.inLine <= 0 ? reading.last : (reading.first ?? 0)))
    },
    numbered(number) {
      last = Math.max(last, number)
    },
    current: () => ({ serving, last }),
  }
}
