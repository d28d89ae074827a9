/**
 * Ageing, as in schedulers: held jobs run before deferred ones, and each added one, of a known device or not, promotes the two deferred
 * jobs that have waited longest. So deferred jobs get at least two thirds of the workers' capacity, however many held jobs arrive: half
 * would be enough for their tickets, but in a spike that workers join the last of them would wait a quarter longer (infra/sizing).
 */
import type { RedisConnection } from '../redis/connect.js'
import { jobKey, queueKey } from './keys.js'

/** Deferred jobs that each held one promotes. */
export const PROMOTED_BY_EACH = 2
/** The share of the capacity that deferred jobs get at least. */
export const DEFERRED_SHARE = PROMOTED_BY_EACH / (PROMOTED_BY_EACH + 1)

/**
 * Lua: moves the first deferred jobs to the end of the held ones, as BullMQ does when a priority changes. One script, because several
 * gateways may do it at once.
 * KEYS: deferred set, waiting list. ARGV: prefix of job keys, how many. Ids of jobs that do not exist are removed, and count.
 */
const PROMOTE_OLDEST_DEFERRED = `
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1)) do
  redis.call('ZREM', KEYS[1], id)
  if redis.call('EXISTS', ARGV[1] .. id) == 1 then
    redis.call('HSET', ARGV[1] .. id, 'priority', 0)
    redis.call('LPUSH', KEYS[2], id)
  end
end`

/** Promotes the oldest deferred jobs to the held lane, as many as one held job does; fewer when there are fewer. */
export async function promoteOldestDeferred(redis: RedisConnection, prefix: string): Promise<void> {
  const keys = [queueKey(prefix, 'prioritized'), queueKey(prefix, 'wait')]
  await redis.eval(PROMOTE_OLDEST_DEFERRED, keys.length, ...keys, jobKey(prefix), PROMOTED_BY_EACH)
}
