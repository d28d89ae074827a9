/**
 * Keeps the keys of a queue sound. A writer to Redis can put anything in the place of a number or a
 * key, and BullMQ's scripts and ours would then fail for as long as it stays. So scripts reset what
 * they write, and whoever takes the jobs of a queue removes the rest.
 */

import { ThrottledWarning, type Warnings } from '@spillway/common/throttled-warning'
import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { toList } from '../redis/unexpected-reply.js'
import { QUEUE_NAME } from '../wire/job.js'
import { jobKey, type QueuePart, queueKey, queueParts } from './keys.js'

const parts = Object.keys(queueParts).filter((part): part is QueuePart => part in queueParts)

/** Jobs in hand whose locks are looked at. */
const LOCKS = 1_000
/** Longer than any lock or turn of BullMQ's lasts. */
const LOCK_MOST_MS = 60_000
/** Entries of BullMQ's stream of events that somebody may have it keep. */
const EVENTS_MOST = 100_000
const INTERVAL_MS = 1_000

const removeUnsound = defineScript('removeUnsound-14')

/** Removes from a queue's keys what BullMQ cannot have written, once a second. */
export class SoundQueue {
  readonly #timer: NodeJS.Timeout

  constructor(options: { redis: RedisConnection; prefix: string; name?: string; log: Warnings }) {
    const { redis, prefix, name = QUEUE_NAME, log } = options
    const keys = parts.map((part) => queueKey(prefix, part, name))
    const args = [jobKey(prefix, '', name), LOCKS, LOCK_MOST_MS, EVENTS_MOST, ...parts.map((part) => queueParts[part])]
    const found = new ThrottledWarning(log, 'wrong values in Redis were removed')
    const look = async (): Promise<void> => {
      if (redis.status !== 'ready') return
      const removed = toList(await removeUnsound(redis, keys, ...args))
      if (removed.length > 0) found.warn(new Error(removed.join(', ')), { times: removed.length })
    }
    this.#timer = setInterval(() => void look().catch(() => undefined), INTERVAL_MS)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
