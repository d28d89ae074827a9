/**
 * Counts of requests in Redis, where all gateways share them. Several limits are counted by one script of our own: what one of
 * them refuses must not use up the next.
 */
import type { RedisConnection } from '@spillway/worker/client'
import type { ClientContext, Result } from 'ioredis'

/**
 * Lua: counts a request under each key in turn, up to the first where it is one too many.
 * KEYS: counters. ARGV: how long a counter lives from its first request, in milliseconds; the limit of each counter. Returns
 * the count and the milliseconds left of each counter that was reached.
 */
const COUNT_REQUEST = `
local counts = {}
for i, key in ipairs(KEYS) do
  local count = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  if left < 0 then
    redis.call('PEXPIRE', key, ARGV[1])
    left = tonumber(ARGV[1])
  end
  counts[i] = {count, left}
  if count > tonumber(ARGV[i + 1]) then break end
end
return counts`

export interface Limit {
  key: string
  /** Requests in a window. */
  max: number
}

export interface Count {
  /** How many the limit had in this window, with this one. */
  count: number
  /** Until the window ends, rounded up. */
  resetS: number
}

/**
 * Counts a request against these limits, in this order and up to the first that it exceeds; gives those with their counts.
 * Their keys must lie in one slot of a Cluster.
 */
export type CountRequest = <L extends Limit>(limits: readonly L[]) => Promise<(L & Count)[]>

/** A window begins with the first request that is counted in it. */
export function createRequestCounts(redis: RedisConnection, { windowMs }: { windowMs: number }): CountRequest {
  redis.defineCommand('countRequest', { lua: COUNT_REQUEST })
  return async (limits) => {
    const [keys, maxima] = [limits.map(({ key }) => key), limits.map(({ max }) => max)]
    const counts = await redis.countRequest(keys.length, ...keys, windowMs, ...maxima)
    return limits.flatMap((limit, i) => {
      const [count, resetMs] = counts[i] ?? []
      return count === undefined || resetMs === undefined ? [] : { ...limit, count, resetS: Math.ceil(resetMs / 1_000) }
    })
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    countRequest(keys: number, ...keysAndArguments: (string | number)[]): Result<[number, number][], Context>
  }
}
