/**
 * Ageing, as in schedulers: held jobs run before deferred ones, and each added one, of a known device or not, promotes the deferred job
 * that has waited longest. So deferred jobs get at least half of the workers' capacity, however many held jobs arrive.
 */
import type { RedisConnection } from '../redis/connect.js'
import { jobKey, queueKey } from './keys.js'

/**
 * Lua: moves the first deferred job to the end of the held ones, as BullMQ does when a priority changes. One script, because several
 * gateways may do it at once.
 * KEYS: deferred set, waiting list. ARGV: prefix of job keys. Returns 1 when a job was moved, else 0.
 */
const PROMOTE_OLDEST_DEFERRED = `
local id = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not id then return 0 end
redis.call('ZREM', KEYS[1], id)
if redis.call('EXISTS', ARGV[1] .. id) == 0 then return 0 end
redis.call('HSET', ARGV[1] .. id, 'priority', 0)
redis.call('LPUSH', KEYS[2], id)
return 1`

/** Promotes the oldest deferred job to the held lane; does nothing when there is none. */
export async function promoteOldestDeferred(redis: RedisConnection, prefix: string): Promise<void> {
  const keys = [queueKey(prefix, 'prioritized'), queueKey(prefix, 'wait')]
  await redis.eval(PROMOTE_OLDEST_DEFERRED, keys.length, ...keys, jobKey(prefix))
}
