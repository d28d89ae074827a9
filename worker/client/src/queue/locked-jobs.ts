/** The locks of active jobs: which ones a consumer holds, and how it gets one back that was lost. */
import type { RedisConnection } from '../redis/connect.js'
import { lockKey, queueKey } from './keys.js'

/** Of the active jobs, those that are looked at: the latest, which BullMQ adds at the beginning of its list. */
const SCAN_LENGTH = 1_000

export interface LockedJob {
  id: string
  /** The value of the lock, which BullMQ asks for to move the job. */
  token: string
}

/** @param consumerId the id of BullMQ's Worker, with which its tokens begin */
export async function lockedJobs(redis: RedisConnection, prefix: string, consumerId: string): Promise<LockedJob[]> {
  const active = await redis.lrange(queueKey(prefix, 'active'), 0, SCAN_LENGTH - 1)
  if (active.length === 0) return []
  const tokens = await redis.mget(active.map((id) => lockKey(prefix, id)))
  return active.flatMap((id, n) => {
    const token = tokens[n]
    return token?.startsWith(`${consumerId}:`) ? [{ id, token }] : []
  })
}

/**
 * Lua: locks an active job again whose lock is gone. KEYS: lock, active list, the set of jobs that seem to be stalled. ARGV: token,
 * milliseconds, job id. Returns 1, or 0 where the job is locked, waits again or has ended.
 */
const RETAKE_LOCK = `
if redis.call('EXISTS', KEYS[1]) == 1 or not redis.call('LPOS', KEYS[2], ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SREM', KEYS[3], ARGV[3])
return 1`

/** Locks a job again that is still active and that nobody else has taken. */
export async function retakeLock(
  redis: RedisConnection,
  prefix: string,
  { id, token }: LockedJob,
  lockMs: number,
): Promise<void> {
  const keys = [lockKey(prefix, id), queueKey(prefix, 'active'), queueKey(prefix, 'stalled')]
  await redis.eval(RETAKE_LOCK, keys.length, ...keys, token, lockMs, id)
}
