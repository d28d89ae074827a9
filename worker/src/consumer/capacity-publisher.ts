/** Tells gateways, a few times a second, what this worker can do, and learns on the way Redis's time and who waits. */
import { randomUUID } from 'node:crypto'
import {
  CAPACITY_KEY_TTL_S,
  capacityKey,
  PUBLISH_CAPACITY,
  PUBLISH_INTERVAL_MS,
  queueKey,
  type WorkerCapacity,
} from '@spillway/client/protocol/capacity'
import type { RedisClock } from '@spillway/client/redis/clock'
import type { RedisConnection } from '@spillway/client/redis/connect'
import { warnSeldom } from '@spillway/client/redis/tell-seldom'
import { withResolvers } from '@spillway/client/with-resolvers'
import { ReplyError } from 'ioredis'
import type { Logger } from '../process/log.js'

/** Each new service time counts this much: the mean follows a change within some ten jobs. */
const SERVICE_TIME_WEIGHT = 0.2

export interface CapacityPublisher {
  /** Resolves with the first publication that Redis takes: from then on its time is known, and who waits. */
  published: Promise<void>
  /** A job ended here; one that was answered took this long to hash. */
  finished(outcome: keyof WorkerCapacity['finished'], serviceMs?: number): void
  /** Takes this worker's entry away, so that gateways stop counting on it at once; by themselves they do so a little later. */
  close(): Promise<void>
}

export interface CapacityPublisherOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
  /** What operators know this worker by. */
  name: string
  slots: number
  busySlots(): number
  /** Whether this worker stands in at a gateway. */
  fallback: boolean
  /** The service time to publish until jobs have been seen: measured at start. */
  serviceMs: number
  /** Told each time that Redis answers, with the number of waiting jobs that could be taken. */
  heard(waiting: number): void
}

/** Starts publishing: at once, and again and again, whether Redis takes it or not. */
export function publishCapacity(options: CapacityPublisherOptions): CapacityPublisher {
  const { redis, prefix, clock, log, name, fallback, slots, busySlots, heard } = options
  const workerId = randomUUID()
  const parts = ['wait', 'prioritized', 'active', 'meta'] as const
  const keys = [capacityKey(prefix), ...parts.map((part) => queueKey(prefix, part))]
  const finished = { answered: 0, expired: 0, failed: 0 }
  let serviceMs = options.serviceMs
  const first = withResolvers<void>()
  const notPublished = warnSeldom(log, 'capacity could not be published')
  let publishing: Promise<void> | undefined

  async function publish(): Promise<void> {
    const entry = {
      name,
      fallback,
      slots,
      serviceMs: Math.round(serviceMs * 1_000) / 1_000,
      busy: busySlots(),
      finished,
    }
    const answer = await clock.synchronize(
      async () =>
        readPublication(
          await redis.eval(PUBLISH_CAPACITY, keys.length, ...keys, workerId, JSON.stringify(entry), CAPACITY_KEY_TTL_S),
        ),
      ({ at }) => at,
    )
    notPublished.over()
    heard(answer.waiting)
    first.resolve()
  }

  function publishUnlessUnderway(): void {
    // One at a time: what Redis does not answer now is not worth saying twice.
    publishing ??= publish()
      .catch((error: unknown) => {
        notPublished.tell(error)
        // A refusal is an answer, and while Redis refuses writes no job can be taken either.
        if (error instanceof ReplyError) heard(0)
      })
      .finally(() => {
        publishing = undefined
      })
  }

  publishUnlessUnderway()
  const timer = setInterval(publishUnlessUnderway, PUBLISH_INTERVAL_MS)

  return {
    published: first.promise,
    finished(outcome, took) {
      finished[outcome] += 1
      if (took !== undefined) serviceMs += (took - serviceMs) * SERVICE_TIME_WEIGHT
    },
    async close() {
      clearInterval(timer)
      await publishing
      await redis.hdel(capacityKey(prefix), workerId)
    },
  }
}

function readPublication(answer: unknown): { at: number; waiting: number } {
  const [at, waiting] = Array.isArray(answer) ? answer.map(Number) : []
  if (at === undefined || waiting === undefined) throw new Error('Redis gave no time')
  return { at, waiting }
}
