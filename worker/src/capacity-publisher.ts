/** Tells gateways, a few times a second, what this worker can do, and learns on the way Redis's time and who waits. */
import { randomUUID } from 'node:crypto'
import type { RedisClock } from './clock.js'
import type { Logger } from './log.js'
import {
  CAPACITY_KEY_TTL_S,
  capacityKey,
  PUBLISH_CAPACITY,
  PUBLISH_INTERVAL_MS,
  queueList,
} from './protocol/capacity.js'
import type { RedisConnection } from './redis.js'

/** Each new service time counts this much: the mean follows a change within some ten jobs. */
const SERVICE_TIME_WEIGHT = 0.2

export interface CapacityPublisher {
  /** A job took this long to hash. */
  observe(serviceMs: number): void
  /** Jobs waiting at the last publication, and when that was (epoch milliseconds by Redis's clock; 0 before the first). */
  seen(): { waiting: number; at: number }
  /** Takes this worker's entry away, so that gateways stop counting on it at once. */
  close(): Promise<void>
}

export interface CapacityPublisherOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
  slots: number
  /** The service time to publish until jobs have been seen: measured at start. */
  serviceMs: number
}

/** Starts publishing; resolves when the first publication is out. */
export async function publishCapacity(options: CapacityPublisherOptions): Promise<CapacityPublisher> {
  const { redis, prefix, clock, log, slots } = options
  const workerId = randomUUID()
  let serviceMs = options.serviceMs
  let seen = { waiting: 0, at: 0 }

  async function publish(): Promise<void> {
    const keys = [capacityKey(prefix), queueList(prefix, 'wait')]
    const [at, waiting] = await clock.synchronize(
      async () =>
        readPublication(
          await redis.eval(
            PUBLISH_CAPACITY,
            keys.length,
            ...keys,
            workerId,
            slots,
            serviceMs.toFixed(3),
            CAPACITY_KEY_TTL_S,
          ),
        ),
      ([time]) => time,
    )
    seen = { waiting, at }
  }

  let publishing = publish()
  await publishing
  const timer = setInterval(() => {
    publishing = publishing
      .then(publish)
      .catch((error: unknown) => log.warn({ err: error }, 'capacity could not be published'))
  }, PUBLISH_INTERVAL_MS)

  return {
    observe(took) {
      serviceMs += (took - serviceMs) * SERVICE_TIME_WEIGHT
    },
    seen: () => seen,
    async close() {
      clearInterval(timer)
      await publishing
      await redis.hdel(capacityKey(prefix), workerId)
    },
  }
}

function readPublication(answer: unknown): [at: number, waiting: number] {
  const [at, waiting] = Array.isArray(answer) ? answer.map(Number) : []
  if (at === undefined || waiting === undefined) throw new Error('Redis gave no time')
  return [at, waiting]
}
