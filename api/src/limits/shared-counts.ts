/**
 * Counters in several Redis: each has its home in one of them, by rendezvous hashing (Thaler and Ravishankar 1998), so that all gateways
 * agree without asking each other. While the home does not answer, it is counted in the next: a count may then begin anew, so that at
 * most as many times a limit is let through as there are Redis, and once more for each that comes back without its data.
 */
import { createHash } from 'node:crypto'
import type { RedisOfQueue } from '@spillway/client/queue-client'
import { within } from '@spillway/client/within'
import { type CountRequest, createRequestCounts } from './request-counts.js'

/** How long the answer of one Redis is waited for where there is another, in milliseconds. */
const ANSWER_MS = 500

export type CountingRedis = Pick<RedisOfQueue, 'address' | 'connection' | 'isUsable'>

export function createSharedCounts(redis: readonly CountingRedis[], options: { windowMs: number }): CountRequest {
  const counters = redis.map((one) => ({ ...one, count: createRequestCounts(one.connection, options) }))
  return (key) => atHome(key, counters, ({ count }) => count(key))
}

/** Asks the one Redis by itself; of several, the first usable one in the order of the key. Rejects when none of them answers. */
export async function atHome<One extends CountingRedis, Answer>(
  key: string,
  redis: readonly One[],
  ask: (one: One) => Promise<Answer>,
): Promise<Answer> {
  const [only] = redis
  if (only !== undefined && redis.length === 1) return ask(only)
  for (const one of inOrderOf(key, redis)) {
    if (!one.isUsable()) continue
    const answer = await within(ANSWER_MS, ask(one)).catch(() => undefined)
    if (answer !== undefined) return answer
  }
  throw new Error('no Redis counts')
}

/** The highest digest of key and address first: without one of them, the others keep their order. */
export function inOrderOf<T extends { address: string }>(key: string, redis: readonly T[]): T[] {
  const weighed = redis.map((one) => ({
    one,
    weight: createHash('sha256').update(`${one.address}\n${key}`).digest('hex'),
  }))
  return weighed.sort((a, b) => (a.weight < b.weight ? 1 : -1)).map(({ one }) => one)
}
