/**
 * Counters in Redis, shared by all gateways, in fixed windows that begin with their first request.
 * Of several Redis servers, rendezvous hashing (Thaler and Ravishankar 1998) assigns each counter
 * to one. While that server does not answer, the next one counts, from 0: with n servers, a window
 * lets through up to n times the limit, and once more for each that comes back without its data.
 */
import { createHash, hash } from 'node:crypto'
import { ThrottledWarning, type Warnings } from '@spillway/common/throttled-warning'
import { within } from '@spillway/common/within'
import type { Keyring, RedisOfQueue } from '@spillway/queue/queue-client'
import { defineScript, toCount, toList } from '@spillway/queue/redis/script'
import { normalizeEmail } from '../schemas/credentials.js'

/** How long to wait for one of several Redis servers before asking the next, in milliseconds. */
const ANSWER_MS = 500

export interface CountingRedis extends Pick<RedisOfQueue, 'address' | 'connection' | 'isUsable' | 'now'> {
  countFailed(error: unknown): void
}

/**
 * The Redis servers of the queue, as counters need them. A failed count admits its request, and is
 * logged; a lost connection has log lines of its own.
 */
export function toCountingRedis(redis: readonly RedisOfQueue[], log: Warnings): CountingRedis[] {
  const failed = new ThrottledWarning(log, 'requests could not be counted')
  return redis.map(({ address, connection, isReady, isUsable, now }) => ({
    ...{ address, connection, isUsable, now },
    countFailed(error: unknown) {
      if (isReady()) failed.warn(error, { facts: { redis: address } })
    },
  }))
}

const countRequest = defineScript('countRequest-1', new URL('./scripts/', import.meta.url))

export interface Count {
  /** Requests in this window, including this one. */
  count: number
  /** Seconds until the window ends, rounded up. */
  resetS: number
}

/** Counts a request under a key. Rejects when no server counts it. */
export async function countIn(windowMs: number, key: string, redis: readonly CountingRedis[]): Promise<Count> {
  const answer = await atHome(key, redis, ({ connection }) => countRequest(connection, [key], windowMs))
  const [count, resetMs] = toList(answer)
  return { count: toCount(count), resetS: Math.ceil(toCount(resetMs) / 1_000) }
}

/** Asks a single server itself; of several, the first usable one in the order of the key. */
export async function atHome<Answer>(
  key: string,
  redis: readonly CountingRedis[],
  ask: (one: CountingRedis) => Promise<Answer>,
): Promise<Answer> {
  const askOne = (one: CountingRedis) =>
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

/** The highest digest of key and address first: without a server, the others keep their order. */
export function inOrderOf<T extends { address: string }>(key: string, redis: readonly T[]): T[] {
  const weighed = redis.map((one) => ({
    one,
    weight: createHash('sha256').update(`${one.address}\n${key}`).digest('hex'),
  }))
  return weighed.sort((a, b) => (a.weight < b.weight ? 1 : -1)).map(({ one }) => one)
}

const NAME_BYTES = 16

/** The digest of an address in its one form. Not secret from someone who guesses addresses. */
export function accountOfEmail(email: string): string {
  return accountDigest(normalizeEmail(email))
}

/** The name of something that has no address, such as a user's id. */
export function accountDigest(text: string): string {
  return hash('sha256', text, 'buffer').subarray(0, NAME_BYTES).toString('base64url')
}

/**
 * The name of an account in Redis: keyed, so that a reader cannot try addresses. It changes with
 * the first seal key: counts then begin at 0.
 */
export function accountNameOf(account: string, keyring: Keyring): string {
  const [name = ''] = accountNamesOf(account, keyring)
  return name
}

/** Its names by all seal keys, today's first. */
export function accountNamesOf(account: string, keyring: Keyring): string[] {
  const macs = keyring.macs({ purpose: 'account', id: account })
  return macs.map((mac) => mac.subarray(0, NAME_BYTES).toString('base64url'))
}
