/** The place of a job in its queue. */
import type { RedisConnection } from '../redis/connect.js'
import { toCount, toList } from '../redis/unexpected-reply.js'
import { queueKey } from './keys.js'

/** Entries of the waiting list that are searched, from the next one to be taken: a thousand take some 20 µs of Redis. */
const SEARCH_LENGTH = 1_000

/**
 * Lua: counts the jobs ahead of one. KEYS: deferred set, waiting list, active list. ARGV: the job id, entries to search. Returns the
 * deferred ones and the others; a job that is in neither lane has nothing ahead, nor has one that is done.
 */
const FIND_PLACE = `
local waiting = redis.call('LLEN', KEYS[2])
local active = redis.call('LLEN', KEYS[3])
local rank = redis.call('ZRANK', KEYS[1], ARGV[1])
if rank then return {rank, waiting + active} end
local index = redis.call('LPOS', KEYS[2], ARGV[1], 'RANK', -1, 'MAXLEN', ARGV[2])
if index then return {0, waiting - 1 - index + active} end
return {0, waiting > tonumber(ARGV[2]) and waiting + active or 0}`

/** The jobs that are ahead of a job, by lane: `held` are those that wait for no deferred one, and those in hand. */
export interface Place {
  held: number
  deferred: number
}

export async function findPlace(redis: RedisConnection, prefix: string, jobId: string): Promise<Place> {
  const keys = (['prioritized', 'wait', 'active'] as const).map((part) => queueKey(prefix, part))
  const answer = await redis.eval(FIND_PLACE, keys.length, ...keys, jobId, SEARCH_LENGTH)
  const [deferred, held] = toList(answer)
  return { held: toCount(held), deferred: toCount(deferred) }
}
