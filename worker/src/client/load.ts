/** The state of the queue, read a few times a second, and what it says about the wait of a job that is added now. */
import type { RedisClock } from '../clock.js'
import type { Logger } from '../log.js'
import { capacityKey, type Load, queueKey, READ_LOAD, sumCapacity, toEntries } from '../protocol/capacity.js'
import type { Lane } from '../protocol/job.js'
import type { RedisConnection } from '../redis.js'
import { withResolvers } from '../with-resolvers.js'
import { within } from '../within.js'

export const READ_INTERVAL_MS = 250

/**
 * For so long after Redis was away, the workers that were there before count as there: they publish again only a moment
 * later, and nobody is to be sent off with a ticket for that.
 */
const REUNION_MS = 1_500

const NO_CAPACITY = { workers: 0, slots: 0, jobsPerSecond: 0, serviceMs: 0 }

export interface LoadReader {
  /** Resolves with the first reading, or after this time in vain. */
  whenKnown(waitMs: number): Promise<void>
  current(): Load
  /** A job was added here since the last reading: it counts at once, not a quarter of a second later. */
  added(lane: Lane): void
  /** Milliseconds until a job added to this lane now would be answered; Infinity when no worker is alive. */
  predictedWaitMs(lane: Lane): number
  close(): void
}

export function readLoad(options: {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
}): LoadReader {
  const { redis, prefix, clock, log } = options
  const states = ['wait', 'prioritized', 'active'] as const
  const keys = [capacityKey(prefix), ...states.map((state) => queueKey(prefix, state))]
  let load: Load = { known: false, waiting: 0, deferred: 0, active: 0, ...NO_CAPACITY }
  let addedSince = { held: 0, deferred: 0 }
  const { promise: known, resolve: isKnown } = withResolvers<void>()
  let reading = false
  let lastCapacity = NO_CAPACITY
  let lastAwayAt = Number.NEGATIVE_INFINITY

  async function read(): Promise<void> {
    if (reading) return
    reading = true
    const addedBefore = addedSince
    try {
      const { at, capacity, ...depth } = await clock.synchronize(
        async () => parseLoad(await redis.eval(READ_LOAD, keys.length, ...keys)),
        (answer) => answer.at,
      )
      const live = sumCapacity(capacity, at)
      if (live.slots > 0 || performance.now() - lastAwayAt > REUNION_MS) lastCapacity = live
      load = { known: true, ...depth, ...lastCapacity }
      isKnown()
      addedSince = {
        held: addedSince.held - addedBefore.held,
        deferred: addedSince.deferred - addedBefore.deferred,
      }
    } catch (error) {
      // What is not known for sure counts as gone; the next reading is a quarter of a second away.
      load = { ...load, known: false, ...NO_CAPACITY }
      // Nothing to keep before the first worker was seen.
      if (lastCapacity.slots > 0) lastAwayAt = performance.now()
      log.debug({ err: error }, 'queue load could not be read')
    } finally {
      reading = false
    }
  }

  function current(): Load {
    return { ...load, waiting: load.waiting + addedSince.held, deferred: load.deferred + addedSince.deferred }
  }

  const timer = setInterval(read, READ_INTERVAL_MS)
  timer.unref()
  // While the connection is being made there is nothing to read from.
  redis.on('ready', read)

  return {
    whenKnown: (waitMs) => within(waitMs, known),
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
    close() {
      clearInterval(timer)
      redis.off('ready', read)
    },
  }
}

interface LoadAnswer {
  at: number
  waiting: number
  deferred: number
  active: number
  capacity: Record<string, string>
}

function parseLoad(answer: unknown): LoadAnswer {
  if (!Array.isArray(answer)) throw new Error('Redis gave no load')
  const [at, waiting, deferred, active, pairs]: unknown[] = answer
  return {
    at: Number(at),
    waiting: Number(waiting),
    deferred: Number(deferred),
    active: Number(active),
    capacity: toEntries(pairs),
  }
}
