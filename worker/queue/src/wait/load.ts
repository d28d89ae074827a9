/** Reads the load: four times a second while jobs wait or requests come, else once. */

import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import { within, withResolvers } from '@spillway/common/within'
import { ReplyError } from 'ioredis'
import { type RawLoad, readRawLoad } from '../jobs/capacity.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import {
  areForEachOther,
  canaryOf,
  finishedBy,
  type Load,
  liveWorkers,
  sumAsking,
  sumCapacity,
  type WorkerCapacity,
} from '../wire/capacity.js'
import { type Keyring, SEAL_KEYS } from '../wire/seal.js'
import { LoadState, type Reading } from './load-state.js'

/** While jobs wait, and the greatest age of a reading that is used. */
export const READ_INTERVAL_MS = 250
/** While workers are alive and have nothing to do. */
const QUIET_INTERVAL_MS = 1_000

interface LoadReaderOptions {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  clock: RedisClock
  log: Logger
  /** The cap of passed-over jobs [no cap]. */
  maxAbsent?: number | undefined
}

export class LoadReader extends LoadState {
  readonly #options: LoadReaderOptions
  readonly #otherKeys
  readonly #finished = new FinishedJobs()
  readonly #known = withResolvers<void>()
  #hasOtherKeys = false
  #isReading = false
  #isQuiet = false
  #isClosed = false
  #readAt = Number.NEGATIVE_INFINITY
  #readings = 0
  #workers: ReadonlyMap<string, WorkerCapacity> = new Map()
  #timer: NodeJS.Timeout | undefined

  constructor(options: LoadReaderOptions) {
    super()
    this.#options = options
    this.#otherKeys = new ThrottledWarning(options.log, 'workers cannot open what is sealed here')
    this.#readLater()
    // Reads as soon as there is a connection, instead of at the next interval.
    options.redis.on('ready', this.#read)
  }

  /** The first request after a while gets the last reading, and begins another. */
  override current(): Load {
    const isOld = performance.now() - this.#readAt > READ_INTERVAL_MS
    if (isOld && this.#options.redis.status === 'ready') void this.#read()
    return super.current()
  }

  /** Resolves with the first reading, or after this time without one. */
  whenKnown(waitMs: number): Promise<void> {
    return within(waitMs, this.#known.promise)
  }

  /** Jobs that workers reported as finished since this process started. */
  finishedJobs(): number {
    return this.#finished.count()
  }

  /** The workers whose capacity counts, by id. */
  workers(): ReadonlyMap<string, WorkerCapacity> {
    return this.#workers
  }

  /** Whether all workers have other keys: neither side opens what the other seals. */
  hasOtherKeys(): boolean {
    return this.#hasOtherKeys
  }

  /** The number of the reading that is under way; undefined while no reading is. */
  readingUnderway(): number | undefined {
    return this.#isReading ? this.#readings : undefined
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#options.redis.off('ready', this.#read)
  }

  readonly #read = async (): Promise<void> => {
    if (this.#isReading) return
    const { redis, prefix, clock, log, maxAbsent } = this.#options
    this.#isReading = true
    this.#readAt = performance.now()
    this.#readings += 1
    const reading = this.reading()
    try {
      const raw = await clock.synchronize(
        () => readRawLoad(redis, prefix, this.#readings, maxAbsent),
        ({ at }) => at,
      )
      this.#take(raw, reading)
    } catch (error) {
      this.#isQuiet = false
      reading.failed()
      log.debug({ err: error }, 'queue load could not be read')
      // Another command's reply, or none in time: replies here cannot be told apart any more.
      if (!(error instanceof ReplyError) && redis.status === 'ready') redis.disconnect(true)
    } finally {
      this.#isReading = false
      this.#readLater()
    }
  }

  #take({ at, capacity, first, isBehind, last, ...depth }: RawLoad, reading: Reading): void {
    const workers = liveWorkers(capacity, at)
    const { keyring, prefix } = this.#options
    const ownCanary = canaryOf(keyring, prefix)
    this.#hasOtherKeys = workers.size > 0 && ![...workers.values()].some(({ keys }) => areForEachOther(ownCanary, keys))
    if (this.#hasOtherKeys) this.#otherKeys.warn(new Error(`the workers have another ${SEAL_KEYS}`))
    this.#finished.update(workers)
    depth.active = Math.max(0, depth.active - sumAsking(workers))
    reading.succeeded(depth, sumCapacity(workers), { first, isBehind, last, finished: this.#finished.count() })
    // After an outage those known before it count for a moment, as in the state.
    if (workers.size > 0 || super.current().slots === 0) this.#workers = workers
    const { waiting, deferred, active, absent } = depth
    this.#isQuiet = workers.size > 0 && waiting + deferred + active + absent === 0
    this.#known.resolve()
  }

  #readLater(): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(this.#read, this.#isQuiet ? QUIET_INTERVAL_MS : READ_INTERVAL_MS).unref()
  }
}

/** Sums the increases of workers' counters. A first count may be days of work: it is left out. */
export class FinishedJobs {
  #total = 0
  #before = new Map<string, number>()

  /** Takes the counters of the workers that are alive now, by worker id. */
  update(workers: ReadonlyMap<string, WorkerCapacity>): void {
    const now = new Map([...workers].map(([id, capacity]) => [id, finishedBy(capacity)]))
    for (const [id, count] of now) this.#total += Math.max(0, count - (this.#before.get(id) ?? count))
    this.#before = now
  }

  /** Never decreases. */
  count(): number {
    return this.#total
  }
}
