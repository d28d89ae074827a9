/**
 * The lane of known devices: their jobs overtake other held ones, first come first served among themselves. Workers alternate: one
 * known-device job, one other. So known devices get at most half of the workers' capacity while others wait, however many there are.
 */
import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { jobKey, lastKnownKey, queueKey } from './keys.js'

/** Entries of the waiting list that are searched for the last one, from the next one to be taken: a thousand take some 20 µs of Redis. */
export const SEARCH_LENGTH = 1_000
/** How long the last one is remembered: longer than any waits, because admission gives this lane a second of work at the most. */
const REMEMBERED_MS = 60_000

/**
 * Lua: moves a job that was just added forward: behind the last one that was moved and one other, or behind one other where that has been
 * taken. Without the latter, jobs that come as fast as they are taken would leave no room for others.
 * KEYS: waiting list, the key of the last one. ARGV: job id, entries to search, milliseconds to remember it. Returns 1 when the job
 * waited, else 0. LREM comes first because of a full Redis: as in REPLY (wire/reply.ts), what follows a write is not refused, or the
 * job would be lost.
 */
const moveForward = defineScript(`
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
local last = redis.pcall('GET', KEYS[2])
local index = type(last) == 'string' and redis.call('LPOS', KEYS[1], last, 'RANK', -1, 'MAXLEN', ARGV[2])
local ahead = index and redis.call('LLEN', KEYS[1]) - index + 1 or 1
local follows = redis.call('LINDEX', KEYS[1], -ahead)
if follows then redis.call('LINSERT', KEYS[1], 'BEFORE', follows, ARGV[1]) else redis.call('LPUSH', KEYS[1], ARGV[1]) end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
return 1`)

/** Gives a waiting job of the held lane its place in the lane of known devices; does nothing when it does not wait any more. */
export async function bringForward(redis: RedisConnection, prefix: string, jobId: string): Promise<void> {
  const keys = [queueKey(prefix, 'wait'), lastKnownKey(prefix)]
  await moveForward(redis, keys, jobId, SEARCH_LENGTH, REMEMBERED_MS)
}

// Ageing, as in schedulers: held jobs run before deferred ones, and each added job, of a known device or not, promotes the two oldest
// deferred jobs. So deferred jobs get at least two thirds of the workers' capacity, however many held jobs arrive. Half would be enough for
// their tickets, but in a spike that workers join the last job would wait a quarter longer (infra/sizing).

/** Deferred jobs that each held one promotes. */
export const PROMOTED_BY_EACH = 2
/** The share of the capacity that deferred jobs get at least. */
export const DEFERRED_SHARE = PROMOTED_BY_EACH / (PROMOTED_BY_EACH + 1)
/** The share of the capacity within a ticket's life that a line may fill: the rest is left to jobs that overtake, and a tenth of this spare. */
export const LINE_SHARE = 0.9 * DEFERRED_SHARE
/** Tickets that may be absent, for each job that may be outstanding. */
export const ABSENT_SHARE = 0.5

/**
 * Lua: moves the first deferred jobs to the end of the held ones, as BullMQ does when a priority changes. One script, because several
 * gateways may do it at once.
 * KEYS: deferred set, waiting list. ARGV: prefix of job keys, how many. Ids of jobs that do not exist are removed, and count.
 */
const promoteOldest = defineScript(`
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1)) do
  redis.call('ZREM', KEYS[1], id)
  if redis.call('EXISTS', ARGV[1] .. id) == 1 then
    redis.call('HSET', ARGV[1] .. id, 'priority', 0)
    redis.call('LPUSH', KEYS[2], id)
  end
end`)

/** Promotes the oldest deferred jobs to the held lane, as many as one held job does; fewer when there are fewer. */
export async function promoteOldestDeferred(redis: RedisConnection, prefix: string): Promise<void> {
  const keys = [queueKey(prefix, 'prioritized'), queueKey(prefix, 'wait')]
  await promoteOldest(redis, keys, jobKey(prefix), PROMOTED_BY_EACH)
}
