/** Reads the load of the queue: a few times a second while jobs wait or requests come, else once a second. */

import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { within, withResolvers } from '@spillway/common/within'
import { ReplyError } from 'ioredis'
import { readRawLoad } from '../jobs/capacity.js'
import type { Logger } from '../logger.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import {
  areForEachOther,
  canaryOf,
  finishedBy,
  liveWorkers,
  sumAsking,
  sumCapacity,
  type WorkerCapacity,
} from '../wire/capacity.js'
import { type Keyring, SEAL_KEYS } from '../wire/seal.js'
import { createLoadState, type LoadState } from './load-state.js'

/** While jobs wait, and the greatest age of a reading that is used. */
export const READ_INTERVAL_MS = 250
/** While workers are alive and have nothing to do. */
const QUIET_INTERVAL_MS = 1_000

export interface LoadReader extends Omit<LoadState, 'reading'> {
  /** Resolves with the first reading, or after this time without one. */
  whenKnown(waitMs: number): Promise<void>
  /** Jobs that workers reported as finished since this process started. */
  finishedJobs(): number
  /** The workers whose capacity counts, by id. */
  workers(): ReadonlyMap<string, WorkerCapacity>
  /** Whether there are workers and all have other keys: what is sealed here they cannot open, or the other way round. */
  hasOtherKeys(): boolean
  /** The number of the reading that is under way; undefined while no reading is. */
  reading(): number | undefined
  close(): void
}

export function readLoad(options: {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  clock: RedisClock
  log: Logger
  /** The cap of passed-over jobs [no cap]. */
  maxAbsent?: number | undefined
}): LoadReader {
  const { redis, prefix, clock, log, maxAbsent } = options
  const ownCanary = canaryOf(options.keyring, prefix)
  const otherKeys = new ThrottledWarning(log, 'workers cannot open what is sealed here')
  let hasOtherKeys = false
  const { reading: beginReading, ...state } = createLoadState()
  const finished = countFinishedJobs()
  const { promise: known, resolve: isKnown } = withResolvers<void>()
  let isReading = false
  let isQuiet = false
  let readAt = Number.NEGATIVE_INFINITY
  let readings = 0
  let counted: ReadonlyMap<string, WorkerCapacity> = new Map()

  async function read(): Promise<void> {
    if (isReading) return
    isReading = true
    readAt = performance.now()
    readings += 1
    const reading = beginReading()
    try {
      const { at, capacity, first, isBehind, last, ...depth } = await clock.synchronize(
        () => readRawLoad(redis, prefix, readings, maxAbsent),
        (answer) => answer.at,
      )
      const workers = liveWorkers(capacity, at)
      hasOtherKeys =
        workers.size > 0 &&
        ![...workers.values()].some(({ keys }) => keys !== undefined && areForEachOther(ownCanary, keys))
      if (hasOtherKeys) otherKeys.warn(new Error(`the workers have another ${SEAL_KEYS}`))
      finished.update(workers)
      depth.active = Math.max(0, depth.active - sumAsking(workers))
      reading.succeeded(depth, sumCapacity(workers), { first, isBehind, last, finished: finished.count() })
      // After an outage those known before it count for a moment, as in the state.
      if (workers.size > 0 || state.current().slots === 0) counted = workers
      const { waiting, deferred, active, absent } = depth
      isQuiet = workers.size > 0 && waiting + deferred + active + absent === 0
      isKnown()
    } catch (error) {
      isQuiet = false
      reading.failed()
      log.debug({ err: error }, 'queue load could not be read')
      // The reply of another command, or no reply in time: no reply on this connection can be told from another any more.
      if (!(error instanceof ReplyError) && redis.status === 'ready') redis.disconnect(true)
    } finally {
      isReading = false
      readLater()
    }
  }

  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  function readLater(): void {
    clearTimeout(timer)
    if (!isClosed) timer = setTimeout(read, isQuiet ? QUIET_INTERVAL_MS : READ_INTERVAL_MS).unref()
  }
  /** The first request after a while has the last reading, which counts what is added here; those after it have another one. */
  function readIfOld(): void {
    if (performance.now() - readAt > READ_INTERVAL_MS && redis.status === 'ready') void read()
  }

  readLater()
  // Reads as soon as there is a connection, instead of at the next interval.
  redis.on('ready', read)

  return {
    ...state,
    current() {
      readIfOld()
      return state.current()
    },
    predictedWaitMs(lane) {
      readIfOld()
      return state.predictedWaitMs(lane)
    },
    whenKnown: (waitMs) => within(waitMs, known),
    finishedJobs: finished.count,
    workers: () => counted,
    hasOtherKeys: () => hasOtherKeys,
    reading: () => (isReading ? readings : undefined),
    close() {
      isClosed = true
      clearTimeout(timer)
      redis.off('ready', read)
    },
  }
}

export interface FinishedJobs {
  /** Takes the counters of the workers that are alive now, by worker id. */
  update(workers: ReadonlyMap<string, WorkerCapacity>): void
  /** Never decreases. */
  count(): number
}

/** Sums the increases of all workers' counters. A worker's count at its first sight is not included: it may be days of work. */
export function countFinishedJobs(): FinishedJobs {
  let total = 0
  let before = new Map<string, number>()
  return {
    update(workers) {
      const now = new Map([...workers].map(([id, capacity]) => [id, finishedBy(capacity)]))
      for (const [id, count] of now) total += Math.max(0, count - (before.get(id) ?? count))
      before = now
    },
    count: () => total,
  }
}
