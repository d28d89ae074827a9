/** The capacity hash beside BullMQ's keys: a worker publishes its entry, a gateway reads the load, sweeping deletes old entries. */

import { askOnNewConnection, type RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { parseRedisServers } from '../redis/servers.js'
import { toCount, toList, UnexpectedReply } from '../redis/unexpected-reply.js'
import {
  CANARY_COUNTS_MS,
  CAPACITY_KEY_TTL_S,
  canaryKey,
  capacityKey,
  FRESH_FOR_MS,
  liveWorkers,
  type WorkerCapacity,
} from '../wire/capacity.js'
import { absentKey, BEHIND_BY, jobKey, lastKnownKey, lineKey, queueKey, returnedKey, toEntries } from './keys.js'
import { SEARCH_LENGTH } from './lanes.js'
import { LUA_SOUND } from './sound.js'
import { FIRST_SCORE, FIRST_SCORE_BEHIND } from './ticket.js'

/** Abandoned tickets that one publication drops. */
const DROPPED_AT_ONCE = 1_000

/** Lua: counts tickets that were dropped, in the hash of the line. */
const LUA_ABANDONED = `
local function count_abandoned(line, count)
  keep_only('hash', line)
  redis.call('HSET', line, 'abandoned', to_count(redis.call('HGET', line, 'abandoned')) + count)
end`

/**
 * Lua: `may_begin` is whether a process may begin to take what others seal, by the codes of its keys: where a living worker has keys that fit,
 * or no living worker has others and neither have those that were there a moment ago. Two keyrings fit where each opens what the other seals.
 */
export const LUA_KEYS = `
local function fit(ours, theirs)
  local function has(list, code) return string.find(',' .. list .. ',', ',' .. code .. ',', 1, true) ~= nil end
  return has(ours, string.match(theirs, '^[^,]*')) and has(theirs, string.match(ours, '^[^,]*'))
end
local function may_begin(ours, entries, now, canary_key)
  local has_others = false
  for n = 2, #entries, 2 do
    local read, entry = pcall(cjson.decode, entries[n])
    if read and type(entry) == 'table' and type(entry.keys) == 'string' and type(entry.at) == 'number' and
      math.abs(now - entry.at) <= ${FRESH_FOR_MS} then
      if fit(ours, entry.keys) then return true end
      has_others = true
    end
  end
  if has_others then return false end
  local canary = redis.pcall('GET', canary_key)
  local age = ${CAPACITY_KEY_TTL_S * 1_000} - redis.call('PTTL', canary_key)
  return type(canary) ~= 'string' or fit(ours, canary) or age < 0 or age > ${CANARY_COUNTS_MS}
end`

/**
 * Lua: writes one worker's entry with Redis's time and its canary, renews the hash, and drops passed-over jobs whose deadline is over.
 * KEYS: capacity hash, waiting list, deferred set, active list, meta hash, canary, absent set, line, returned set. ARGV: worker id, the
 * entry as JSON without its time, TTL of both in seconds, the canary, prefix of job keys, how many to drop, by how much less the score of
 * an absent job that is behind is, 1 for a worker that takes jobs. Returns the time in epoch milliseconds, the number of jobs that can be
 * taken (0 while the queue is paused, limited in its rate, or at its limit of active jobs), how many were dropped, and how many are in hand.
 * The time alone, and nothing written, for a worker that must not begin.
 */
const publishCapacity = defineScript(`${LUA_SOUND}${LUA_ABANDONED}${LUA_KEYS}
local time = redis.call('TIME')
local entry = cjson.decode(ARGV[2])
-- A key of another type is nobody's, and would stop every publication and reading.
keep_only('hash', KEYS[1])
keep_only('zset', KEYS[7])
keep_only('hash', KEYS[8])
keep_only('zset', KEYS[9])
entry.at = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[8] ~= '1' and not may_begin(ARGV[4], redis.call('HGETALL', KEYS[1]), entry.at, KEYS[6]) then return {entry.at} end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('SET', KEYS[6], ARGV[4], 'EX', ARGV[3])
local dropped = 0
for from, to in pairs({['-inf'] = entry.at - ARGV[7], ['0'] = entry.at}) do
  local abandoned = redis.call('ZRANGEBYSCORE', KEYS[7], from, to, 'LIMIT', 0, ARGV[6])
  for _, id in ipairs(abandoned) do redis.call('DEL', ARGV[5] .. id) end
  if #abandoned > 0 then redis.call('ZREM', KEYS[7], unpack(abandoned)) end
  dropped = dropped + #abandoned
end
if dropped > 0 then count_abandoned(KEYS[8], dropped) end
redis.call('ZREMRANGEBYSCORE', KEYS[9], '-inf', entry.at)
local paused, rate, limit = unpack(redis.call('HMGET', KEYS[5], 'paused', 'max', 'concurrency'))
local held = paused or rate or (limit and redis.call('LLEN', KEYS[4]) >= tonumber(limit))
return {entry.at, held and 0 or redis.call('LLEN', KEYS[2]) + redis.call('ZCARD', KEYS[3]), dropped, redis.call('LLEN', KEYS[4])}`)

/**
 * Lua: reads the load, all that admission needs, and drops passed-over jobs beyond their cap: the oldest that are behind, then the oldest.
 * KEYS: capacity hash, waiting list, deferred set, active list, the key of the last job of a known device, absent set, line,
 * returned set, meta hash. ARGV: entries to search for that, the number of the reading, prefix of job keys, first score, first score of
 * jobs that are behind, the cap of passed-over jobs and those whose clients came back (-1: no cap), how many to drop. Returns the number of
 * the reading, the time in epoch milliseconds, the five lengths, the hash's pairs, behind how many jobs lanes.ts would put the next one, the
 * numbers of the first deferred job and of the last one that was given out (0 without one), whether the first deferred job is
 * behind, and whether the queue is paused. A deferred job whose client came back is not the first: its turn was before.
 */
const askLoad = defineScript(`${LUA_SOUND}${LUA_ABANDONED}
local time = redis.call('TIME')
-- A key of another type is removed where workers write: until then it says nothing.
local function ask(command, ...)
  local reply = redis.pcall(command, ...)
  return type(reply) == 'table' and reply.err and {} or reply
end
local function length(command, key)
  local reply = ask(command, key)
  return type(reply) == 'number' and reply or 0
end
local waiting = length('LLEN', KEYS[2])
local last = redis.pcall('GET', KEYS[5])
local index = type(last) == 'string' and waiting > 0 and redis.call('LPOS', KEYS[2], last, 'RANK', -1, 'MAXLEN', ARGV[1])
local first, score
local entries = ask('ZRANGEBYSCORE', KEYS[3], ARGV[4], '+inf', 'WITHSCORES', 'LIMIT', 0, 8)
for i = 1, #entries, 2 do
  if not first and entries[i + 1] % 1 == 0 then first, score = entries[i], entries[i + 1] end
end
local absent, returned = length('ZCARD', KEYS[6]), length('ZCARD', KEYS[8])
local cap = tonumber(ARGV[6])
local excess = cap < 0 and 0 or math.min(absent, absent + returned - cap, tonumber(ARGV[7]))
if excess > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[6], 0, excess - 1)) do redis.call('DEL', ARGV[3] .. id) end
  redis.call('ZREMRANGEBYRANK', KEYS[6], 0, excess - 1)
  count_abandoned(KEYS[7], excess)
  absent = absent - excess
end
return {tonumber(ARGV[2]), time[1] * 1000 + math.floor(time[2] / 1000), waiting, length('ZCARD', KEYS[3]),
  length('LLEN', KEYS[4]), absent, returned, ask('HGETALL', KEYS[1]),
  index and waiting - index + 1 or 1, to_count(first and redis.pcall('HGET', ARGV[3] .. first, 'number')),
  to_count(redis.pcall('HGET', KEYS[7], 'number')),
  score and tonumber(score) >= tonumber(ARGV[5]) and 1 or 0,
  redis.pcall('HEXISTS', KEYS[9], 'paused') == 1 and 1 or 0}`)

/**
 * Lua: deletes the entries of workers that ended without deleting theirs, and entries without a time. Other fields are not checked:
 * the entry may be of a newer version. KEYS: capacity hash. ARGV: seconds that an entry is kept.
 */
const SWEEP_CAPACITY = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local isJson, entry = pcall(cjson.decode, fields[i + 1])
  local at = isJson and type(entry) == 'table' and entry.at
  local isFresh = type(at) == 'number' and math.abs(now - at) <= ARGV[1] * 1000
  if not isFresh then redis.call('HDEL', KEYS[1], fields[i]) end
end
return 1`

/** The answer to a publication. */
export interface Publication {
  /** Epoch milliseconds by Redis's clock. */
  at: number
  /** Waiting jobs that can be taken. */
  waiting: number
  /** Tickets whose clients were absent from their turn until their deadline, and which were dropped now. */
  abandoned: number
  /** Jobs in hand, of all workers. */
  active: number
}

/** Where the workers of the queue have other keys: nothing was published. */
export interface Refusal {
  at: number
}

/** Writes the entry of a worker, with Redis's time, and its keys as the canary. One that takes no jobs yet may be refused. */
export async function writeCapacity(
  redis: RedisConnection,
  prefix: string,
  workerId: string,
  entry: Omit<WorkerCapacity, 'at'> & { keys: string },
  takesJobs: boolean,
): Promise<Publication | Refusal> {
  const parts = ['wait', 'prioritized', 'active', 'meta'] as const
  const own = [canaryKey(prefix), absentKey(prefix), lineKey(prefix), returnedKey(prefix)]
  const keys = [capacityKey(prefix), ...parts.map((part) => queueKey(prefix, part)), ...own]
  const facts = [CAPACITY_KEY_TTL_S, entry.keys, jobKey(prefix), DROPPED_AT_ONCE, BEHIND_BY, takesJobs ? 1 : 0]
  const answer = toList(await publishCapacity(redis, keys, workerId, JSON.stringify(entry), ...facts))
  const [at, waiting, abandoned, active] = answer
  if (answer.length === 1) return { at: toCount(at) }
  return { at: toCount(at), waiting: toCount(waiting), abandoned: toCount(abandoned), active: toCount(active) }
}

/** The depth of the queue and the entries of workers, as they are in Redis. */
export interface RawLoad {
  /** Epoch milliseconds by Redis's clock. */
  at: number
  waiting: number
  deferred: number
  active: number
  /** Jobs that were passed over, and those of them whose clients have come back. */
  absent: number
  returned: number
  /** The number of the first deferred job; undefined without one, and until it has one. */
  first: number | undefined
  /** Whether that is behind: the line is done except for those. */
  isBehind: boolean
  /** Whether operators have paused the queue. */
  paused: boolean
  /** The last number that was given out. */
  last: number
  /** Waiting jobs that the next one of a known device is put behind, if there are as many. */
  aheadOfKnown: number
  /** JSON by worker id, not checked. */
  capacity: Record<string, string>
}

/**
 * Reads the load. Throws {@link UnexpectedReply} when the reply belongs to another reading.
 *
 * @param reading its number, which no other reading on this connection has had
 * @param maxAbsent passed-over jobs beyond this number are dropped, those counted whose clients have come back [no job is]
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
  const answer = toList(await askLoad(redis, keys, ...args))
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

/** The living workers beside this one. */
export async function countOtherWorkers(redis: RedisConnection, prefix: string, workerId: string): Promise<number> {
  const [[seconds], entries] = await Promise.all([redis.time(), redis.hgetall(capacityKey(prefix))])
  const { [workerId]: _own, ...others } = entries
  return liveWorkers(others, Number(seconds) * 1_000).size
}

/** Lua: as above, of a queue whose takers publish no capacity. KEYS: canary. ARGV: own keys, seconds, 1 where it takes jobs. Returns what Claim says. */
const renewCanary = defineScript(`${LUA_KEYS}
local may = may_begin(ARGV[1], {}, 0, KEYS[1])
if ARGV[3] ~= '1' and not may then return 'refused' end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return may and 'alone' or 'shared'`)

/** `refused`: those who take the jobs have other keys. `shared`: they have, and this one takes jobs, too. `alone`: nobody with other keys does. */
type Claim = 'refused' | 'shared' | 'alone'

/** Writes the canary of who takes jobs, or wants to. */
export async function claimCanary(
  redis: RedisConnection,
  key: string,
  keys: string,
  takesJobs: boolean,
): Promise<Claim> {
  const claim = await renewCanary(redis, [key], keys, CAPACITY_KEY_TTL_S, takesJobs ? 1 : 0)
  return claim === 'refused' || claim === 'shared' ? claim : 'alone'
}

/** Whether workers of a queue have left the canary of their keys within the last minute. False where Redis does not answer. */
export async function hasCanary(redisUrl: string, prefix: string): Promise<boolean> {
  const found = parseRedisServers(redisUrl).map(({ url }) =>
    askOnNewConnection(url, (redis) => redis.exists(canaryKey(prefix))),
  )
  return (await Promise.all(found)).includes(1)
}

/** Deletes the entries that have not been renewed for this long, in seconds. */
export async function sweepCapacity(redis: RedisConnection, prefix: string, keepS = CAPACITY_KEY_TTL_S): Promise<void> {
  await redis.eval(SWEEP_CAPACITY, 1, capacityKey(prefix), keepS)
}
