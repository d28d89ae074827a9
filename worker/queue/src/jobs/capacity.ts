/** The capacity hash beside BullMQ's keys: workers publish in it, gateways read it. */

import { askOnNewConnection, type RedisConnection } from '../redis/connect.js'
import { defineScript, toCount, toList, UnexpectedReply } from '../redis/script.js'
import { parseRedisServers } from '../redis/servers.js'
import {
  CANARY_COUNTS_MS,
  CAPACITY_KEY_TTL_S,
  canaryKey,
  capacityKey,
  type Depth,
  FRESH_FOR_MS,
  liveWorkers,
  type WorkerCapacity,
} from '../wire/capacity.js'
import { absentKey, BEHIND_BY, jobKey, lastKnownKey, lineKey, queueKey, returnedKey, toEntries } from './keys.js'
import { SEARCH_LENGTH } from './lanes.js'
import { FIRST_SCORE, FIRST_SCORE_BEHIND } from './ticket.js'

/** Absent jobs that one publication or reading drops at most. */
const DROPPED_AT_ONCE = 1_000

const publishCapacity = defineScript('publishCapacity-9')
const readLoad = defineScript('readLoad-9')
const deleteOldEntries = defineScript('sweepCapacity-1')

export interface Publication {
  /** Epoch milliseconds by Redis's clock. */
  at: number
  /** Waiting jobs that can be taken. */
  waiting: number
  /** Tickets that were dropped now: absent from their turn until their deadline. */
  abandoned: number
  /** Jobs in hand, of all workers. */
  active: number
}

/**
 * Writes a worker's entry and its canary; nothing, and a time alone, for a worker that takes no
 * jobs yet where the workers of the queue have other keys.
 */
export async function writeCapacity(
  redis: RedisConnection,
  prefix: string,
  workerId: string,
  entry: Omit<WorkerCapacity, 'at'>,
  takesJobs: boolean,
): Promise<Publication | Pick<Publication, 'at'>> {
  const parts = ['wait', 'prioritized', 'active', 'meta'] as const
  const own = [canaryKey(prefix), absentKey(prefix), lineKey(prefix), returnedKey(prefix)]
  const keys = [capacityKey(prefix), ...parts.map((part) => queueKey(prefix, part)), ...own]
  const facts = [CAPACITY_KEY_TTL_S, entry.keys, jobKey(prefix), DROPPED_AT_ONCE, BEHIND_BY, takesJobs ? 1 : 0]
  const ages = [FRESH_FOR_MS, CANARY_COUNTS_MS]
  const answer = toList(await publishCapacity(redis, keys, workerId, JSON.stringify(entry), ...facts, ...ages))
  const [at, waiting, abandoned, active] = answer
  if (answer.length === 1) return { at: toCount(at) }
  return { at: toCount(at), waiting: toCount(waiting), abandoned: toCount(abandoned), active: toCount(active) }
}

export interface RawLoad extends Depth {
  /** Epoch milliseconds by Redis's clock. */
  at: number
  /** The number of the first deferred job; undefined without one, and until it has one. */
  first: number | undefined
  /** Whether that is behind: the line is done except for those. */
  isBehind: boolean
  /** The last number that was given out. */
  last: number
  /** JSON by worker id, not checked. */
  capacity: Record<string, string>
}

/**
 * Reads the load. Throws {@link UnexpectedReply} when the reply belongs to another reading.
 *
 * @param reading its number, which no other reading on this connection has had
 * @param maxAbsent absent jobs are dropped while absent and returned jobs together exceed this
 * number [no job is]
 */
export async function readRawLoad(
  redis: RedisConnection,
  prefix: string,
  reading: number,
  maxAbsent = -1,
): Promise<RawLoad> {
  const parts = ['wait', 'prioritized', 'active'] as const
  const own = [lastKnownKey(prefix), absentKey(prefix), lineKey(prefix), returnedKey(prefix)]
  const keys = [capacityKey(prefix), ...parts.map((part) => queueKey(prefix, part)), ...own, queueKey(prefix, 'meta')]
  const bounds = [FIRST_SCORE, FIRST_SCORE_BEHIND, maxAbsent, DROPPED_AT_ONCE]
  const args = [SEARCH_LENGTH, reading, jobKey(prefix), ...bounds]
  const answer = toList(await readLoad(redis, keys, ...args))
  const [of, at, ...lengths] = answer.slice(0, 7)
  const [waiting, deferred, active, absent, returned] = lengths
  const [pairs, aheadOfKnown, first, last, isBehind, paused] = answer.slice(7)
  if (of !== reading) throw new UnexpectedReply('Redis gave another reading of the load')
  return {
    at: toCount(at),
    waiting: toCount(waiting),
    deferred: toCount(deferred),
    active: toCount(active),
    absent: toCount(absent),
    returned: toCount(returned),
    first: toCount(first) || undefined,
    isBehind: isBehind === 1,
    paused: paused === 1,
    last: toCount(last),
    aheadOfKnown: toCount(aheadOfKnown),
    capacity: toEntries(pairs),
  }
}

/** Workers beside this one that published within ten seconds: one that stands still counts, too. */
export async function countOtherWorkers(redis: RedisConnection, prefix: string, workerId: string): Promise<number> {
  const [[seconds], entries] = await Promise.all([redis.time(), redis.hgetall(capacityKey(prefix))])
  const { [workerId]: _own, ...others } = entries
  return liveWorkers(others, Number(seconds) * 1_000, CANARY_COUNTS_MS).size
}

const renewCanary = defineScript('claimCanary-1')

/** Whether takers of the jobs have other keys, and whether this process takes jobs, too. */
type Claim = 'refused' | 'shared' | 'alone'

/** Writes the canary of who takes jobs, or wants to. */
export async function claimCanary(
  redis: RedisConnection,
  key: string,
  keys: string,
  takesJobs: boolean,
): Promise<Claim> {
  const claim = await renewCanary(redis, [key], keys, CAPACITY_KEY_TTL_S, takesJobs ? 1 : 0, CANARY_COUNTS_MS)
  return claim === 'refused' || claim === 'shared' ? claim : 'alone'
}

/** Whether workers left a canary within the last minute. False where Redis does not answer. */
export async function hasCanary(redisUrl: string, prefix: string): Promise<boolean> {
  const found = parseRedisServers(redisUrl).map(({ url }) =>
    askOnNewConnection(url, (redis) => redis.exists(canaryKey(prefix))),
  )
  return (await Promise.all(found)).includes(1)
}

/** Deletes the entries that have not been renewed for this long, in seconds. */
export async function sweepCapacity(redis: RedisConnection, prefix: string, keepS = CAPACITY_KEY_TTL_S): Promise<void> {
  await deleteOldEntries(redis, [capacityKey(prefix)], keepS)
}
