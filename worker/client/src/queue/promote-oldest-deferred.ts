/**
 * Ageing, in the sense of schedulers: held jobs go before deferred ones, and each that does promotes the deferred one that has
 * waited longest. So deferred jobs get half of what workers can do at least, however many newcomers there are.
 */
import { jobKey, queueKey } from '../protocol/capacity.js'
import type { RedisConnection } from '../redis/connect.js'

/**
 * Lua: moves the first of the deferred jobs to the end of the held ones, as BullMQ does for a change of priority. In one step,
 * so that any number of gateways can do it at once.
 * KEYS: deferred set, waiting list. ARGV: start of every job's key. Returns 1 when there was one, else 0.
 */
const PROMOTE_OLDEST_DEFERRED = `
local id = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not id then return 0 end
redis.call('ZREM', KEYS[1], id)
if redis.call('EXISTS', ARGV[1] .. id) == 0 then return 0 end
redis.call('HSET', ARGV[1] .. id, 'priority', 0)
redis.call('LPUSH', KEYS[2], id)
return 1`

/** Lets the deferred job that has waited longest in among the held ones; does nothing when none waits. */
export async function promoteOldestDeferred(redis: RedisConnection, prefix: string): Promise<void> {
  const keys = [queueKey(prefix, 'prioritized'), queueKey(prefix, 'wait')]
  await redis.eval(PROMOTE_OLDEST_DEFERRED, keys.length, ...keys, jobKey(prefix))
}
