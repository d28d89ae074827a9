/** Lists the active jobs that one consumer holds locked. */
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
