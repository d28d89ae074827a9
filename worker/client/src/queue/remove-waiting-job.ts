/** Removes a job that waits from the queue. */
import { jobKey, queueKey } from '../protocol/capacity.js'
import type { RedisConnection } from '../redis/connect.js'

/**
 * Lua: BullMQ's own remove takes finished jobs away as well, and says the same for a job that is not there. A job that waits
 * has no other keys than its hash.
 * KEYS: waiting list, deferred set, the job's hash. ARGV: job id. Returns 1 when the job waited, else 0.
 */
const REMOVE_WAITING_JOB = `
if redis.call('LREM', KEYS[1], 1, ARGV[1]) + redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[3])
return 1`

/** True when the job had not begun: then nobody will do it. One that is in hand, finished or unknown is left as it is. */
export async function removeWaitingJob(redis: RedisConnection, prefix: string, jobId: string): Promise<boolean> {
  const keys = [queueKey(prefix, 'wait'), queueKey(prefix, 'prioritized'), jobKey(prefix, jobId)]
  return (await redis.eval(REMOVE_WAITING_JOB, keys.length, ...keys, jobId)) === 1
}
