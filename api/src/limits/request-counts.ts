/** Counters of requests in Redis, shared by all gateways. */
import { LUA_SOUND } from '@spillway/queue/jobs/sound'
import type { RedisConnection } from '@spillway/queue/queue-client'
import { toCount, toList } from '@spillway/queue/redis/unexpected-reply'
import type { ClientContext, Result } from 'ioredis'

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
const COUNT_REQUEST = `${LUA_COUNTS}
return {count_request(KEYS[1], ARGV[1])}`

export interface Count {
  /** Requests in this window, including this one. */
  count: number
  /** Seconds until the window ends, rounded up. */
  resetS: number
}

/** Counts a request under a key. */
export type CountRequest = (key: string) => Promise<Count>

/** Counts in fixed windows, each of which begins with its first request. */
export function createRequestCounts(redis: RedisConnection, { windowMs }: { windowMs: number }): CountRequest {
  redis.defineCommand('countRequest', { numberOfKeys: 1, lua: COUNT_REQUEST })
  return async (key) => {
    const [count, resetMs] = toList(await redis.countRequest(key, windowMs))
    return { count: toCount(count), resetS: Math.ceil(toCount(resetMs) / 1_000) }
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    countRequest(key: string, windowMs: number): Result<unknown, Context>
  }
}
