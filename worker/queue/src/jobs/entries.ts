/** Entries of the queue's lists and sets, whatever they name: anyone with write access to Redis can add one. */
import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { jobKey, lockKey, queueKey } from './keys.js'

/** Entries that one scan reads at each end of a list or set: a thousand take a tenth of a second. */
const SCAN_LENGTH = 1_000
const removeFromAll = defineScript('removeEntry-8')

function listsAndSets(prefix: string, queue: string): { lists: string[]; sets: string[] } {
  return {
    lists: (['wait', 'active'] as const).map((part) => queueKey(prefix, part, queue)),
    sets: (['prioritized', 'delayed', 'completed', 'failed'] as const).map((part) => queueKey(prefix, part, queue)),
  }
}

/** The entries that BullMQ takes next: from the end of lists, but new entries of `active` are at its beginning. */
export async function nextEntries(redis: RedisConnection, prefix: string, queue: string): Promise<Set<string>> {
  const { lists, sets } = listsAndSets(prefix, queue)
  const found = await Promise.all([
    ...lists.flatMap((key) => [redis.lrange(key, 0, SCAN_LENGTH - 1), redis.lrange(key, -SCAN_LENGTH, -1)]),
    ...sets.map((key) => redis.zrange(key, '0', String(SCAN_LENGTH - 1))),
  ])
  return new Set(found.flat())
}

/** Removes an entry everywhere, and the job of this id with its lock if told to. Returns 1 when the entry was in the queue, else 0. */
export async function removeEntry(
  redis: RedisConnection,
  { prefix, queue, entry, withJob }: { prefix: string; queue: string; entry: string; withJob: boolean },
): Promise<number> {
  const { lists, sets } = listsAndSets(prefix, queue)
  const keys = [...lists, ...sets, jobKey(prefix, entry, queue), lockKey(prefix, entry, queue)]
  return Number(await removeFromAll(redis, keys, entry, withJob ? 1 : 0))
}
