/** Removes a waiting job from the queue. */
import { presentKey } from '../protocol/reply.js'
import type { RedisConnection } from '../redis/connect.js'
import { absentKey, jobKey, lastKnownKey, queueKey } from './keys.js'

/**
 * Lua: removes a job only while it waits, or waits for its client; its hash and its client's key are then its only keys. BullMQ's own remove also deletes finished jobs, and does not
 * tell whether the job existed. Where it is the last job of a known device, the one before it, two places ahead, is that again (see
 * bring-forward.ts): whoever adds jobs and goes away must not bring later ones before those that wait.
 * KEYS: waiting list, deferred set, the job's hash, the key of the last job of a known device, absent set, present. ARGV: job id. Returns 1 when the job
 * waited, else 0.
 */
const REMOVE_WAITING_JOB = `
local index = redis.pcall('GET', KEYS[4]) == ARGV[1] and redis.call('LPOS', KEYS[1], ARGV[1])
local before = index and redis.call('LINDEX', KEYS[1], index + 2)
local removed = redis.call('LREM', KEYS[1], 1, ARGV[1]) + redis.call('ZREM', KEYS[2], ARGV[1]) + redis.call('ZREM', KEYS[5], ARGV[1])
if removed == 0 then return 0 end
redis.call('DEL', KEYS[3], KEYS[6])
if before then redis.call('SET', KEYS[4], before, 'KEEPTTL') end
return 1`

/** True when the job was waiting and has been removed. Active, finished and unknown jobs are left alone. */
export async function removeWaitingJob(redis: RedisConnection, prefix: string, jobId: string): Promise<boolean> {
  const waiting = [queueKey(prefix, 'wait'), queueKey(prefix, 'prioritized')]
  const keys = [...waiting, jobKey(prefix, jobId), lastKnownKey(prefix), absentKey(prefix), presentKey(prefix, jobId)]
  return (await redis.eval(REMOVE_WAITING_JOB, keys.length, ...keys, jobId)) === 1
}
