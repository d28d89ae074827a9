/** Counters of requests in Redis, shared by all gateways. */
import type { RedisConnection } from '@spillway/client/queue-client'
import { toCount, toList } from '@spillway/client/redis/unexpected-reply'
import type { ClientContext, Result } from 'ioredis'
import { LUA_COUNTS } from './lua-counts.js'

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
