/**
 * Counters in several Redis servers. Rendezvous hashing (Thaler and Ravishankar 1998) assigns each counter to one Redis server, so that all
 * gateways agree without asking each other. While that server does not answer, the next one counts, from 0. With n servers, a window lets
 * through up to n times the limit, and the limit once more for each server that comes back without its data.
 */
import { createHash } from 'node:crypto'
import { throttledWarning, type Warnings } from '@spillway/common/throttled-warning'
import { within } from '@spillway/common/within'
import type { RedisOfQueue } from '@spillway/queue/queue-client'
import { type CountRequest, createRequestCounts } from './request-counts.js'

/** How long to wait for one of several Redis servers before asking the next, in milliseconds. */
const ANSWER_MS = 500

export interface CountingRedis extends Pick<RedisOfQueue, 'address' | 'connection' | 'isUsable' | 'now'> {
  /** To be called with the error of each count that failed. */
  countFailed(error: unknown): void
}

/**
 * The Redis of the queue, as counters need them. A count that fails admits its request, and the log says so. When the connection is lost,
 * its own log lines are enough (redis/watch.ts of the client).
 */
export function toCountingRedis(redis: readonly RedisOfQueue[], log: Warnings): CountingRedis[] {
  const failed = throttledWarning(log, 'requests could not be counted')
  return redis.map(({ address, connection, isReady, isUsable, now }) => ({
    ...{ address, connection, isUsable, now },
    countFailed(error: unknown) {
      if (isReady()) failed.warn(error, { facts: { redis: address } })
    },
  }))
}

export function createSharedCounts(redis: readonly CountingRedis[], options: { windowMs: number }): CountRequest {
  const counters = redis.map((one) => ({ ...one, count: createRequestCounts(one.connection, options) }))
  return (key) => atHome(key, counters, ({ count }) => count(key))
}

/** Asks the one Redis server by itself; of several, the first usable one in the order of the key. Rejects when no server answers. */
export async function atHome<One extends CountingRedis, Answer>(
  key: string,
  redis: readonly One[],
  ask: (one: One) => Promise<Answer>,
): Promise<Answer> {
  const askOne = (one: One) =>
    ask(one).catch((error: unknown) => {
      one.countFailed(error)
      throw error
    })
  const [only] = redis
  if (only !== undefined && redis.length === 1) return askOne(only)
  for (const one of inOrderOf(key, redis)) {
    if (!one.isUsable()) continue
    const answer = await within(ANSWER_MS, askOne(one)).catch(() => undefined)
    if (answer !== undefined) return answer
  }
  throw new Error('no Redis answered')
}

/** The highest digest of key and address first: without one of them, the others keep their order. */
export function inOrderOf<T extends { address: string }>(key: string, redis: readonly T[]): T[] {
  const weighed = redis.map((one) => ({
    one,
    weight: createHash('sha256').update(`${one.address}\n${key}`).digest('hex'),
  }))
  return weighed.sort((a, b) => (a.weight < b.weight ? 1 : -1)).map(({ one }) => one)
}
