/**
 * Publishes this worker's capacity to one Redis server every half second. The answer has Redis's
 * time and the number of waiting jobs.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from '@spillway/common/log'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { withResolvers } from '@spillway/common/within'
import { type Publication, writeCapacity } from '@spillway/queue/jobs/capacity'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import { canaryOf, capacityKey, PUBLISH_INTERVAL_MS, type WorkerCapacity } from '@spillway/queue/wire/capacity'
import { type Keyring, SEAL_KEYS } from '@spillway/queue/wire/seal'
import { ReplyError } from 'ioredis'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { Hasher } from '../hashing/index.js'

export interface CapacityPublisherOptions {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  clock: RedisClock
  log: Logger
  /** The same in each Redis server: readers count a worker once [random]. */
  workerId?: string
  /** For operators: host name and process id. */
  name: string
  slots: number
  busySlots(): number
  /** Jobs in hand that take no slot. */
  asking(): number
  fallback: boolean
  hasher: Pick<Hasher, 'unitCosts'>
  estimate: Pick<CapacityEstimate, 'serviceMs' | 'lineMs' | 'latencyMs' | 'foretoldMs'>
  /** Called each time that Redis answers; an error is an answer without jobs. */
  published(answer: Omit<Publication, 'at'>): void
}

export class CapacityPublisher {
  readonly #options: CapacityPublisherOptions
  readonly #workerId: string
  readonly #refused: ThrottledWarning
  readonly #failed: ThrottledWarning
  readonly #finished = { answered: 0, expired: 0, failed: 0 }
  readonly #first = withResolvers<void>()
  readonly #timer: NodeJS.Timeout
  #publishing: Promise<void> | undefined
  /** From the first publication that is accepted. */
  #takesJobs = false
  #isAccepted = false

  constructor(options: CapacityPublisherOptions) {
    const { log, workerId = randomUUID() } = options
    this.#options = options
    this.#workerId = workerId
    this.#refused = new ThrottledWarning(log, 'the workers of this queue have other keys: this one takes no jobs')
    this.#failed = new ThrottledWarning(log, 'capacity could not be published')
    // Once the caller has opened the other parts of its queue, which an entry tells about.
    queueMicrotask(() => this.#publishUnlessUnderway())
    this.#timer = setInterval(() => this.#publishUnlessUnderway(), PUBLISH_INTERVAL_MS)
  }

  /**
   * Resolves once Redis accepts a publication: its time is known, and the living workers have the
   * same keys. Until then this worker takes no jobs.
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
        if (error instanceof ReplyError) this.#options.published({ waiting: 0, abandoned: 0, active: 0 })
      })
      .finally(() => {
        this.#publishing = undefined
      })
  }

  async #publish(): Promise<void> {
    const { redis, prefix, clock, published } = this.#options
    const answer = await clock.synchronize(
      () => writeCapacity(redis, prefix, this.#workerId, this.#entry(), this.#takesJobs),
      ({ at }) => at,
    )
    this.#failed.recovered()
    this.#isAccepted = true
    if (!('waiting' in answer)) {
      this.#refused.warn(new Error(`compare ${SEAL_KEYS} with theirs`))
      return
    }
    this.#takesJobs = true
    published(answer)
    this.#first.resolve()
  }

  #entry() {
    const { keyring, prefix, name, fallback, slots, busySlots, asking, hasher, estimate } = this.#options
    return {
      ...{ keys: canaryOf(keyring, prefix), name, fallback, slots },
      serviceMs: toMicroseconds(estimate.serviceMs()),
      lineMs: toMicroseconds(estimate.lineMs()),
      latencyMs: toMicroseconds(estimate.latencyMs()),
      unitCosts: { ...hasher.unitCosts, foretoldMs: toMicroseconds(estimate.foretoldMs()) },
      ...{ busy: busySlots(), asking: asking(), finished: this.#finished },
    }
  }
}

/** Rounded to microseconds, and at least one: a time of 0 would be an infinite capacity. */
function toMicroseconds(ms: number): number {
  return Math.max(1, Math.round(ms * 1_000)) / 1_000
}
