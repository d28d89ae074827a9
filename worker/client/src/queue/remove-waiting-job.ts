/** Removes a waiting job from the queue. */
import type { RedisConnection } from '../redis/connect.js'
import { jobKey, queueKey } from './keys.js'

/**
 * Lua: removes a job only while it waits; its hash is then its only key. BullMQ's own remove also deletes finished jobs, and does not
 * tell whether the job existed.
 * KEYS: waiting list, deferred set, the job's hash. ARGV: job id. Returns 1 when the job waited, else 0.
 */
const REMOVE_WAITING_JOB = `
if redis.call('LREM', KEYS[1], 1, ARGV[1]) + redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[3])
return 1`

/** True when the job was waiting and has been removed. Active, finished and unknown jobs are left alone. */
export async function removeWaitingJob(redis: RedisConnection, prefix: string, jobId: string): Promise<boolean> {
  const keys = [queueKey(prefix, 'wait'), queueKey(prefix, 'prioritized'), jobKey(prefix, jobId)]
  return (await redis.eval(REMOVE_WAITING_JOB, keys.length, ...keys, jobId)) === 1
}
