/** Reads the queue: four times a second while jobs wait or requests come, otherwise every two seconds. */

import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import { within, withResolvers } from '@spillway/common/within'
import { publishSealing, type RawReading, readQueue } from './capacity.js'
import { Estimates, type Reading } from './estimates.js'
import type { Load } from './order.js'
import type { RedisClock } from './redis/clock.js'
import type { RedisConnection } from './redis/connect.js'
import { fingerprintsOf, liveWorkers, SEALING_INTERVAL_MS, sumCapacity } from './wire/capacity.js'
import { type Keyring, SEAL_KEYS } from './wire/seal.js'

/** The interval while jobs wait; also the greatest age of a reading that is used. */
const READ_INTERVAL_MS = 250
/** The interval while workers are alive and have nothing to do. */
const QUIET_INTERVAL_MS = 2_000

interface QueueReaderOptions {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  clock: RedisClock
  log: Logger
  clientId: string
}

export class QueueReader extends Estimates {
  readonly #options: QueueReaderOptions
  readonly #otherKeys: ThrottledWarning
  readonly #failed: ThrottledWarning
  readonly #known = withResolvers<void>()
  #clients = 1
  #sealingAt = Number.NEGATIVE_INFINITY
  #hasOtherKeys = false
  #isReading = false
  #isQuiet = false
  #isClosed = false
  #readAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: QueueReaderOptions) {
    super()
    this.#options = options
    this.#otherKeys = new ThrottledWarning(options.log, 'workers cannot open what is sealed here')
    this.#failed = new ThrottledWarning(options.log, 'the queue could not be read')
    this.#readLater()
    // Reads as soon as there is a connection, instead of at the next interval.
    options.redis.on('ready', this.#read)
  }

  /** At most a quarter of a second old; the first request after a while gets an older one, and begins another. */
  override load(): Load {
    const isOld = performance.now() - this.#readAt > READ_INTERVAL_MS
    if (isOld && this.#options.redis.status === 'ready') void this.#read()
    return super.load()
  }

  /** Resolves with the first reading, or after this time without one. */
  whenKnown(waitMs: number): Promise<void> {
    return within(waitMs, this.#known.promise)
  }

  /** Gateways and applications that share the workers, this one included. */
  clients(): number {
    return this.#clients
  }

  /** Whether all live workers have other keys: neither side opens what the other seals. */
  hasOtherKeys(): boolean {
    return this.#hasOtherKeys
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#options.redis.off('ready', this.#read)
  }

  readonly #read = async (): Promise<void> => {
    if (this.#isReading) return
    const { redis, prefix, clock } = this.#options
    this.#isReading = true
    this.#readAt = performance.now()
    const reading = this.beginReading()
    try {
      const raw = await clock.synchronize(
        () => readQueue(redis, prefix, clock.now()),
        ({ at }) => at,
      )
      reading.succeeded(this.#checked(raw))
      this.#known.resolve()
      this.#failed.recovered()
      this.#publishSealing()
    } catch (error) {
      this.#isQuiet = false
      reading.failed()
      // A lost connection has log lines of its own.
      if (redis.status === 'ready') this.#failed.warn(error)
    } finally {
      this.#isReading = false
      this.#readLater()
    }
  }

  /** Workers whose keys do not fit count as missing. */
  #checked({ at, workers, clients, ...queue }: RawReading): Reading {
    const { keyring, prefix } = this.#options
    const all = liveWorkers(workers, at)
    const own = fingerprintsOf(keyring, prefix)
    // Each side opens what the other seals.
    const fit = (keys: readonly string[]) => keys.includes(own[0]) && own.includes(keys[0] ?? '')
    const fitting = new Map([...all].filter(([, { keys }]) => fit(keys)))
    this.#hasOtherKeys = all.size > 0 && fitting.size === 0
    if (this.#hasOtherKeys) this.#otherKeys.warn(new Error(`the workers have another ${SEAL_KEYS}`))
    this.#clients = Math.max(1, clients)
    this.#isQuiet = fitting.size > 0 && queue.open + queue.line + queue.active === 0
    return { ...queue, capacity: sumCapacity(fitting) }
  }

  #publishSealing(): void {
    const { redis, prefix, keyring, clock, log, clientId } = this.#options
    if (performance.now() - this.#sealingAt < SEALING_INTERVAL_MS) return
    this.#sealingAt = performance.now()
    const [fingerprint] = fingerprintsOf(keyring, prefix)
    publishSealing(redis, prefix, { fingerprint, clientId, now: clock.now() }).catch((error: unknown) =>
      log.debug({ err: error }, 'the fingerprint of the key that seals could not be published'),
    )
  }

  #readLater(): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(this.#read, this.#isQuiet ? QUIET_INTERVAL_MS : READ_INTERVAL_MS).unref()
  }
}
