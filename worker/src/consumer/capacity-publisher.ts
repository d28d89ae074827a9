/** Publishes this worker's capacity to the gateways of one Redis server every half second. The answer carries Redis's time and the number of waiting jobs. */
import { randomUUID } from 'node:crypto'
import type { Logger } from '@spillway/common/log'
import { throttledWarning } from '@spillway/common/throttled-warning'
import { withResolvers } from '@spillway/common/within'
import { type Publication, writeCapacity } from '@spillway/queue/jobs/capacity'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import { canaryOf, capacityKey, PUBLISH_INTERVAL_MS, type WorkerCapacity } from '@spillway/queue/wire/capacity'
import { type Keyring, SEAL_KEYS } from '@spillway/queue/wire/seal'
import { ReplyError } from 'ioredis'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { Hasher } from '../hashing/index.js'

export interface CapacityPublisher {
  /**
   * Resolves with the first publication that Redis accepts: from then on its time is known, and the workers that are there have the same
   * keys. Until then this worker takes no jobs.
   */
  firstPublished: Promise<void>
  /** Counts a finished job of this Redis. */
  finished(outcome: keyof WorkerCapacity['finished']): void
  /** Removes this worker's entry, so that gateways stop counting on it at once instead of when it expires. */
  close(): Promise<void>
}

export interface CapacityPublisherOptions {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  clock: RedisClock
  log: Logger
  /** The same in each Redis server: who reads several counts a worker once [one of its own]. */
  workerId?: string
  /** For operators: host name and process id. */
  name: string
  slots: number
  busySlots(): number
  /** Jobs in hand that take no slot. */
  asking(): number
  /** Whether this worker is the fallback of a gateway. */
  fallback: boolean
  hasher: Pick<Hasher, 'unitCosts'>
  estimate: Pick<CapacityEstimate, 'serviceMs' | 'lineMs' | 'latencyMs' | 'foretoldMs'>
  /** Called each time that Redis answers; an error is an answer without jobs. */
  published(answer: Omit<Publication, 'at'>): void
}

/** Starts publishing, at once and then periodically. Failures are logged and do not stop it. */
export function publishCapacity(options: CapacityPublisherOptions): CapacityPublisher {
  const {
    redis,
    prefix,
    clock,
    log,
    workerId = randomUUID(),
    name,
    fallback,
    slots,
    busySlots,
    asking,
    hasher: { unitCosts },
    estimate,
    published,
  } = options
  const keys = canaryOf(options.keyring, prefix)
  const refused = throttledWarning(log, 'the workers of this queue have other keys: this one takes no jobs')
  const finished = { answered: 0, expired: 0, failed: 0 }
  const first = withResolvers<void>()
  const publishFailed = throttledWarning(log, 'capacity could not be published')
  let publishing: Promise<void> | undefined
  /** From the first publication that is accepted. */
  let takesJobs = false

  async function publish(): Promise<void> {
    const entry = {
      keys,
      name,
      fallback,
      slots,
      serviceMs: toMicroseconds(estimate.serviceMs()),
      lineMs: toMicroseconds(estimate.lineMs()),
      latencyMs: toMicroseconds(estimate.latencyMs()),
      unitCosts: { ...unitCosts, foretoldMs: toMicroseconds(estimate.foretoldMs()) },
      busy: busySlots(),
      asking: asking(),
      finished,
    }
    const answer = await clock.synchronize(
      () => writeCapacity(redis, prefix, workerId, entry, takesJobs),
      ({ at }) => at,
    )
    publishFailed.recovered()
    if (!('waiting' in answer)) {
      refused.warn(new Error(`compare ${SEAL_KEYS} with theirs`))
      return
    }
    takesJobs = true
    published(answer)
    first.resolve()
  }

  function publishUnlessUnderway(): void {
    // One at a time: while Redis does not answer, further publications would only queue up.
    publishing ??= publish()
      .catch((error: unknown) => {
        publishFailed.warn(error)
        // An error reply is an answer: Redis is alive. While it refuses writes, no job can be taken.
        if (error instanceof ReplyError) published({ waiting: 0, abandoned: 0, active: 0 })
      })
      .finally(() => {
        publishing = undefined
      })
  }

  // Once the caller has opened the other parts of its queue, which an entry tells about.
  queueMicrotask(publishUnlessUnderway)
  const timer = setInterval(publishUnlessUnderway, PUBLISH_INTERVAL_MS)

  return {
    firstPublished: first.promise,
    finished(outcome) {
      finished[outcome] += 1
    },
    async close() {
      clearInterval(timer)
      await publishing
      await redis.hdel(capacityKey(prefix), workerId)
    },
  }
}

/** Rounded to microseconds, and at least one: a time of 0 would be an infinite capacity. */
function toMicroseconds(ms: number): number {
  return Math.max(1, Math.round(ms * 1_000)) / 1_000
}
