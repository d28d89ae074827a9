/**
 * Counters in Redis, shared by all gateways: in fixed windows, each of which begins with its first request. Of several Redis servers,
 * rendezvous hashing (Thaler and Ravishankar 1998) assigns each counter to one server, so that all gateways agree without asking each other.
 * While that server does not answer, the next one counts, from 0. With n servers, a window lets through up to n times the limit, and the
 * limit once more for each server that comes back without its data.
 */
import { createHash, hash } from 'node:crypto'
import { ThrottledWarning, type Warnings } from '@spillway/common/throttled-warning'
import { within } from '@spillway/common/within'
import type { Keyring, RedisOfQueue } from '@spillway/queue/queue-client'
import { defineLua, LUA_SOUND } from '@spillway/queue/redis/script'
import { toCount, toList } from '@spillway/queue/redis/unexpected-reply'
import { normalizeEmail } from '../schemas/credentials.js'

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
  const failed = new ThrottledWarning(log, 'requests could not be counted')
  return redis.map(({ address, connection, isReady, isUsable, now }) => ({
    ...{ address, connection, isUsable, now },
    countFailed(error: unknown) {
      if (isReady()) failed.warn(error, { facts: { redis: address } })
    },
  }))
}

// Lua for scripts that count. A writer to Redis can put anything in place of a count. A script would then fail as long as the key exists,
// and a request that cannot be counted is admitted. So any other value is deleted before use.

/**
 * Lua functions. `count_at` reads a count, and deletes any other value. `count_request` counts a request in a window, and returns
 * the count and the milliseconds left: the window's length at most, whatever life somebody gave the key.
 */
export const LUA_COUNTS = `${LUA_SOUND}
local function count_at(key)
  keep_only('string', key)
  local text = redis.call('GET', key)
  local count = to_count(text)
  if text and count == 0 then redis.call('DEL', key) end
  return count
end
local function count_request(key, window)
  count_at(key)
  local requests = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  if left < 0 or left > tonumber(window) then
    left = tonumber(window)
    redis.call('PEXPIRE', key, left)
  end
  return requests, left
end`

/**
 * Lua: the time, and sorted sets of what counts for a while: each member with the time at which it lapses. `counted` is how many count;
 * a member that somebody gave a longer life does not. `begin` adds one, or gives it its life again. Neither deletes before it writes.
 */
export const LUA_LAPSING = `${LUA_COUNTS}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
local function counted(key, life)
  keep_only('zset', key)
  return redis.call('ZCOUNT', key, text(now), text(now + life))
end
local function begin(key, member, life)
  redis.call('ZADD', key, text(now + life), member)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(now))
  redis.call('PEXPIRE', key, life)
end`

/**
 * Lua: counts a request.
 * KEYS: the counter. ARGV: the window, in milliseconds. Returns the count and the milliseconds left.
 */
const countRequest = defineLua(`${LUA_COUNTS}
return {count_request(KEYS[1], ARGV[1])}`)

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

/** Asks the one Redis server by itself; of several, the first usable one in the order of the key. Rejects when no server answers. */
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

/** The highest digest of key and address first: without one of them, the others keep their order. */
export function inOrderOf<T extends { address: string }>(key: string, redis: readonly T[]): T[] {
  const weighed = redis.map((one) => ({
    one,
    weight: createHash('sha256').update(`${one.address}\n${key}`).digest('hex'),
  }))
  return weighed.sort((a, b) => (a.weight < b.weight ? 1 : -1)).map(({ one }) => one)
}

const NAME_BYTES = 16

/** The digest of an address as addresses are compared: 22 characters. Not secret from someone who guesses addresses. */
export function accountOfEmail(email: string): string {
  return accountDigest(normalizeEmail(email))
}

/** The name of something that has no address, such as a user's id. */
export function accountDigest(text: string): string {
  return hash('sha256', text, 'buffer').subarray(0, NAME_BYTES).toString('base64url')
}

/**
 * The name of an account in Redis: keyed, so that a reader cannot try addresses. It changes with the first seal key: counts begin at 0
 * after a rotation.
 */
export function createAccountNames(keyring: Keyring): (account: string) => string {
  return (account) => keyring.macs({ purpose: 'account', id: account })[0].subarray(0, NAME_BYTES).toString('base64url')
}
