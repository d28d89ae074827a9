/**
 * Publishes this worker's capacity every half second. The answer has Redis's time and the number
 * of waiting jobs. An idle worker asks for them once a second.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from '@spillway/common/log'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { withResolvers } from '@spillway/common/within'
import { renewCapacity, writeCapacity } from '@spillway/queue/capacity'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import { capacityKey, fingerprintsOf, PUBLISH_INTERVAL_MS, type WorkerCapacity } from '@spillway/queue/wire/capacity'
import { type Keyring, SEAL_KEYS } from '@spillway/queue/wire/seal'
import { ReplyError } from 'ioredis'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'

interface Published {
  /** Waiting jobs that can be taken. */
  waiting: number
  /** Jobs in the hands of all workers. */
  active: number
  /** Whether the keys open what gateways seal. */
  keysFit: boolean
}

interface CapacityPublisherOptions {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  clock: RedisClock
  log: Logger
  /** For operators: host name and process id. */
  name: string
  slots: number
  busySlots(): number
  estimate: CapacityEstimate
  /** Called at each answer of Redis; an error counts as an answer without jobs. */
  published(answer: Published): void
}

export class CapacityPublisher {
  readonly #options: CapacityPublisherOptions
  readonly #workerId = randomUUID()
  readonly #otherKeys: ThrottledWarning
  readonly #failed: ThrottledWarning
  readonly #finished = { answered: 0, skipped: 0, failed: 0 }
  readonly #first = withResolvers<void>()
  readonly #timer: NodeJS.Timeout
  #publishing: Promise<void> | undefined
  #isAccepted = false
  #hasAskedInVain = false

  constructor(options: CapacityPublisherOptions) {
    const { log } = options
    this.#options = options
    this.#otherKeys = new ThrottledWarning(log, 'the gateways of this queue have other keys: this worker takes no jobs')
    this.#failed = new ThrottledWarning(log, 'capacity could not be published')
    // Later, because the entry describes parts of the queue that the caller has not opened yet.
    queueMicrotask(() => this.#publishUnlessUnderway())
    this.#timer = setInterval(() => this.#publishUnlessUnderway(), PUBLISH_INTERVAL_MS)
  }

  /**
   * Resolves once Redis accepts a publication, and the keys open what gateways seal. Until then this
   * worker takes no jobs.
   */
  get firstPublished(): Promise<void> {
    return this.#first.promise
  }

  /** False also while Redis refuses writes. */
  isAccepted(): boolean {
    return this.#isAccepted
  }

  finished(outcome: keyof WorkerCapacity['finished']): void {
    this.#finished[outcome] += 1
  }

  /** Removes this worker's entry before it expires. */
  async close(): Promise<void> {
    const { redis, prefix } = this.#options
    clearInterval(this.#timer)
    await this.#publishing
    await redis.hdel(capacityKey(prefix), this.#workerId)
  }

  #publishUnlessUnderway(): void {
    // One at a time: while Redis does not answer, further publications would only queue up.
    this.#publishing ??= this.#publish()
      .catch((error: unknown) => {
        this.#isAccepted = false
        this.#failed.warn(error)
        // Redis is alive, but refuses writes: no job can be taken.
        if (error instanceof ReplyError) this.#options.published({ waiting: 0, active: 0, keysFit: true })
      })
      .finally(() => {
        this.#publishing = undefined
      })
  }

  async #publish(): Promise<void> {
    const { redis, prefix, clock, busySlots, published } = this.#options
    if (this.#hasAskedInVain && busySlots() === 0) {
      this.#hasAskedInVain = false
      return await renewCapacity(redis, prefix, this.#workerId, this.#entry())
    }
    const answer = await clock.synchronize(
      () => writeCapacity(redis, prefix, this.#workerId, this.#entry()),
      ({ at }) => at,
    )
    this.#failed.recovered()
    this.#isAccepted = true
    const keysFit = this.#keysFit(answer.sealing)
    published({ waiting: answer.waiting, active: answer.active, keysFit })
    if (keysFit) this.#first.resolve()
    this.#hasAskedInVain = keysFit && answer.waiting === 0
  }

  /** Whether this worker opens the requests of at least one client, or there is no client. */
  #keysFit(sealing: readonly string[]): boolean {
    const { keyring, prefix } = this.#options
    const own = fingerprintsOf(keyring, prefix)
    const fit = sealing.length === 0 || sealing.some((key) => own.includes(key))
    if (fit) this.#otherKeys.recovered()
    else this.#otherKeys.warn(new Error(`compare ${SEAL_KEYS} with theirs`))
    return fit
  }

  #entry(): WorkerCapacity {
    const { keyring, prefix, clock, name, slots, busySlots, estimate } = this.#options
    return {
      at: clock.now(),
      keys: fingerprintsOf(keyring, prefix),
      name,
      slots,
      serviceMs: toMicroseconds(estimate.serviceMs()),
      lineMs: toMicroseconds(estimate.lineMs()),
      latencyMs: toMicroseconds(estimate.latencyMs()),
      busy: busySlots(),
      finished: this.#finished,
    }
  }
}

/** Rounded to microseconds, and at least one: a time of 0 would be an infinite capacity. */
function toMicroseconds(ms: number): number {
  return Math.max(1, Math.round(ms * 1_000)) / 1_000
}
