/**
 * The line: everyone who holds a ticket for a deferred job, in the order of their numbers. A ticket is present while a request of its
 * client is held, and for as long as its client was told to stay away, with a grace. At its turn an absent ticket is passed over, unhashed,
 * and kept apart. When its client comes it is next; at its deadline it is dropped. Clients who come back together take turns with the
 * line: one of them, one of the line.
 */

import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { toCount, toList } from '../redis/unexpected-reply.js'
import { BEHIND_PRIORITY, DEFERRED_PRIORITY } from '../wire/job.js'
import { type JobRef, presentKey, replyChannel, verdictKey } from '../wire/reply.js'
import { absentKey, BEHIND_BY, isFailed, jobKey, lineKey, lockKey, queueKey, returnedKey } from './keys.js'
import { LUA_SOUND } from './sound.js'

/** The longest time that a client is told to stay away from its ticket, in milliseconds. */
export const AWAY_MS = 5_000
/** How long a client may be late, or reload its page, in milliseconds. */
export const GRACE_MS = 5_000

/** How long a ticket is present whose client is held for so long, and then told when to come back: never beyond the life of its job. */
export function presentMs(holdMs: number, lifeMs: number): number {
  return Math.max(1, Math.ceil(Math.min(holdMs + AWAY_MS + GRACE_MS, lifeMs)))
}

/** BullMQ's scores of deferred jobs begin here, and are whole numbers. One whose client came back has the half between two. */
export const FIRST_SCORE = DEFERRED_PRIORITY * 2 ** 32
/** Where the scores of jobs that are behind begin. */
export const FIRST_SCORE_BEHIND = BEHIND_PRIORITY * 2 ** 32

/**
 * Lua: gives a deferred job that was just added its number, and with a reply address marks its client as present.
 * KEYS: job, line, present. ARGV: reply address or nothing, milliseconds, the last number that the gateway knows of. Returns the number.
 * A Redis server that lost its data would count from 1 again: what the gateway knows is where it goes on.
 */
const giveNumber = defineScript(`${LUA_SOUND}
if ARGV[1] ~= '' then redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2]) end
keep_only('hash', KEYS[2])
local number = math.max(to_count(redis.call('HGET', KEYS[2], 'number')), to_count(ARGV[3])) + 1
redis.call('HSET', KEYS[2], 'number', number)
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'number', number) end
return number`)

/**
 * Lua: reads what is known of a ticket, and with a reply address marks its client as present: an absent one is then the next to be taken. A
 * job that was held until now, or has no number, is from now on passed over as deferred ones are: it has their priority, which workers
 * read, and keeps its place. The turn of any other one is `firm` from now on: its client has shown that it follows its ticket.
 * An absent job goes before the first of the line; if another one that came back still waits there, behind one of the line after that.
 * KEYS: verdict, present, job, deferred set, waiting list, active list, absent set, marker, meta, line, returned set. ARGV: job id,
 * entries of the waiting list to search, first score, reply address or nothing, milliseconds, the priority of deferred jobs, first score
 * of jobs that are behind, deadline. Returns the verdict or 0 (1: a key of another type), whether the job
 * exists, its number or 0, and the jobs ahead: the deferred ones, and the others. A job that is in neither lane has nothing ahead, nor has
 * one that is done.
 *
 * DEL comes first because of a full Redis: as in REPLY (wire/reply.ts), what follows a write is not refused.
 */
const askOfTicket = defineScript(`${LUA_SOUND}
local id = ARGV[1]
if ARGV[4] ~= '' then
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
end
local verdict = redis.pcall('GET', KEYS[1])
if type(verdict) == 'string' then return {verdict, 1, 0, 0, 0} end
local state = verdict and 1 or 0
keep_only('hash', KEYS[3])
local number = to_count(redis.call('HGET', KEYS[3], 'number'))
local exists = ${isFailed('KEYS[3]')} and 0 or redis.call('EXISTS', KEYS[3])
if ARGV[4] ~= '' and exists == 1 then
  if redis.call('HSETNX', KEYS[3], 'number', 0) == 0 then
    redis.call('HSET', KEYS[3], 'firm', 1)
  else
    local read, opts = pcall(cjson.decode, redis.call('HGET', KEYS[3], 'opts'))
    if read and type(opts) == 'table' and not opts.priority then
      opts.priority = tonumber(ARGV[6])
      redis.call('HSET', KEYS[3], 'opts', cjson.encode(opts))
    end
  end
end
keep_only('hash', KEYS[10])
keep_only('zset', KEYS[11])
if ARGV[4] ~= '' and redis.call('ZREM', KEYS[7], id) == 1 then
  local last = redis.pcall('HGET', KEYS[10], 'returned')
  local after = type(last) == 'string' and tonumber(redis.call('ZSCORE', KEYS[4], last) or '')
  local first = after and '(' .. after or ARGV[3]
  local line = redis.call('ZRANGEBYSCORE', KEYS[4], first, '(' .. ARGV[7], 'WITHSCORES', 'LIMIT', 0, 2)
  local score
  if not after then score = (line[2] or ARGV[3] + 1) - 0.5
  elseif line[4] then score = line[4] - 0.5
  else score = line[2] and line[2] + 0.5 or after + 1 end
  redis.call('ZADD', KEYS[4], score, id)
  redis.call('ZADD', KEYS[11], ARGV[8], id)
  redis.call('HSET', KEYS[10], 'returned', id)
  if redis.call('HEXISTS', KEYS[9], 'paused') == 0 then redis.call('ZADD', KEYS[8], 0, '0') end
end
local waiting = redis.call('LLEN', KEYS[5])
local active = redis.call('LLEN', KEYS[6])
local rank = redis.call('ZRANK', KEYS[4], id)
if rank then return {state, exists, number, rank, waiting + active} end
local index = redis.call('LPOS', KEYS[5], id, 'RANK', -1, 'MAXLEN', ARGV[2])
if index then return {state, exists, number, 0, waiting - 1 - index + active} end
return {state, exists, number, 0, waiting > tonumber(ARGV[2]) and waiting + active or 0}`)

/** Lua: a client went away. KEYS: present. ARGV: reply address of its gateway, milliseconds. What another gateway has marked stays. */
const leavePlace = defineScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2], 'LT')`)

/**
 * Lua: takes an active job from the worker that has just taken it, unless its client is present. A client that is away, as it was told to be,
 * lets held clients go first, once, unless it has redeemed its ticket before (`firm`). Otherwise the tickets that a client drops would be
 * hashed in the grace of each. A job without a number is still being added by its client: workers may take it sooner, unless it is behind. The
 * job leaves the active list last. Where the script fails before that, another worker takes the job over, as if this one had died.
 * KEYS: present, lock, active list, the set of jobs that seem to be stalled, absent set, job, waiting list, returned set. ARGV: job id,
 * token of the lock, deadline, whether it is behind (1 or 0), the longest time away with the grace, in milliseconds, by how much less the
 * score of a job that is behind is. Returns 1 where the job was passed over;
 * 0 where it is to be done, or another worker has it by now.
 */
const passOverJob = defineScript(`
redis.pcall('ZREM', KEYS[8], ARGV[1])
local leftMs = redis.call('PTTL', KEYS[1])
if leftMs ~= -2 then
  local now = redis.call('TIME')
  local lifeMs = ARGV[3] - now[1] * 1000 - now[2] / 1000
  local isAway = leftMs >= 0 and leftMs <= tonumber(ARGV[5]) and leftMs < lifeMs - 1000
  local mayYield = isAway and redis.call('HEXISTS', KEYS[6], 'firm') == 0
  if not mayYield or redis.call('LLEN', KEYS[7]) == 0 then return 0 end
end
if ARGV[4] == '0' and redis.call('HEXISTS', KEYS[6], 'number') == 0 then return 0 end
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[2])
if leftMs ~= -2 and redis.call('EXISTS', KEYS[6]) == 1 then redis.call('HSET', KEYS[6], 'firm', 1) end
redis.call('ZADD', KEYS[5], ARGV[3] - ARGV[4] * ARGV[6], ARGV[1])
redis.call('SREM', KEYS[4], ARGV[1])
redis.call('LREM', KEYS[3], -1, ARGV[1])
return 1`)

/**
 * Lua: takes an active job from its worker, keeps it apart as an absent one, and announces why. Whoever waits for it gets an answer now, and
 * a ticket for it stays pending: the job is next when its client comes again. The announcement comes last, as in REPLY (wire/reply.ts).
 * KEYS: lock, active list, the set of jobs that seem to be stalled, absent set, present. ARGV: job id, token of the lock, deadline, sealed
 * verdict, prefix of reply channels, replyTo. Returns 1; 0 where another worker has the job by now.
 */
const setJobAside = defineScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
redis.call('SREM', KEYS[3], ARGV[1])
redis.call('LREM', KEYS[2], -1, ARGV[1])
local message = ARGV[1] .. ' ' .. ARGV[4]
redis.call('PUBLISH', ARGV[5] .. ARGV[6], message)
local present = redis.pcall('GET', KEYS[5])
if type(present) == 'string' and present ~= ARGV[6] then redis.call('PUBLISH', ARGV[5] .. present, message) end
return 1`)

/** Entries of the waiting list that are searched, from the next one to be taken: a thousand take some 20 µs of Redis. */
const SEARCH_LENGTH = 1_000

/** The jobs that are ahead of a job, by lane: `held` are those that wait for no deferred one, and those in hand. */
export interface Place {
  held: number
  deferred: number
}

/** What Redis knows of a ticket. */
export interface TicketState {
  /** Sealed. `malformed` where the key is of another type, which workers do not write. */
  verdict: string | 'malformed' | undefined
  /** Whether the job is still there, and has not failed. */
  exists: boolean
  /** Undefined for a job that was never deferred. */
  number: number | undefined
  place: Place
}

/** The client that holds a redemption at this gateway. */
export interface Presence {
  replyTo: string
  forMs: number
}

/** Gives a deferred job its number, above the last one that is known here. */
export async function enterLine(
  redis: RedisConnection,
  prefix: string,
  { id }: { id: string },
  presence: Presence | undefined,
  lastKnown: number,
): Promise<number> {
  const keys = [jobKey(prefix, id), lineKey(prefix), presentKey(prefix, id)]
  return toCount(await giveNumber(redis, keys, presence?.replyTo ?? '', presence?.forMs ?? 0, lastKnown))
}

/** Reads a ticket; with a presence its client is there from now on. */
export async function readTicket(
  redis: RedisConnection,
  prefix: string,
  { id, deadline }: Pick<JobRef, 'id' | 'deadline'>,
  presence?: Presence,
): Promise<TicketState> {
  const parts = ['prioritized', 'wait', 'active'] as const
  const keys = [
    ...[verdictKey(prefix, id), presentKey(prefix, id), jobKey(prefix, id)],
    ...parts.map((part) => queueKey(prefix, part)),
    ...[absentKey(prefix), queueKey(prefix, 'marker'), queueKey(prefix, 'meta'), lineKey(prefix), returnedKey(prefix)],
  ]
  const { replyTo = '', forMs = 0 } = presence ?? {}
  const args = [id, SEARCH_LENGTH, FIRST_SCORE, replyTo, forMs, DEFERRED_PRIORITY, FIRST_SCORE_BEHIND, deadline]
  const [verdict, exists, number, deferred, held] = toList(await askOfTicket(redis, keys, ...args))
  return {
    verdict: typeof verdict === 'string' ? verdict : toCount(verdict) === 1 ? 'malformed' : undefined,
    exists: exists === 1,
    number: toCount(number) || undefined,
    place: { held: toCount(held), deferred: toCount(deferred) },
  }
}

/** Gives the place up after the grace, unless its client comes again. */
export async function leave(redis: RedisConnection, prefix: string, jobId: string, replyTo: string): Promise<void> {
  await leavePlace(redis, [presentKey(prefix, jobId)], replyTo, GRACE_MS)
}

/** Passes over an active job whose client is absent, behind or not [false]. False where the job is to be done. */
export async function passOver(
  redis: RedisConnection,
  prefix: string,
  { id, deadline }: Pick<JobRef, 'id' | 'deadline'>,
  token: string,
  isBehind = false,
): Promise<boolean> {
  const keys = [
    ...[presentKey(prefix, id), lockKey(prefix, id), queueKey(prefix, 'active'), queueKey(prefix, 'stalled')],
    ...[absentKey(prefix), jobKey(prefix, id), queueKey(prefix, 'wait'), returnedKey(prefix)],
  ]
  const args = [id, token, deadline, isBehind ? 1 : 0, AWAY_MS + GRACE_MS, BEHIND_BY]
  return (await passOverJob(redis, keys, ...args)) === 1
}

/** Sets an active job aside, without a verdict that stays, and announces the one that is given: see `unavailable`. */
export async function setAside(
  redis: RedisConnection,
  prefix: string,
  { id, deadline, replyTo }: Pick<JobRef, 'id' | 'deadline'> & { replyTo: string },
  token: string,
  sealed: string,
): Promise<void> {
  const keys = [
    ...[lockKey(prefix, id), queueKey(prefix, 'active'), queueKey(prefix, 'stalled')],
    ...[absentKey(prefix), presentKey(prefix, id)],
  ]
  await setJobAside(redis, keys, id, token, deadline, sealed, replyChannel(prefix, ''), replyTo)
}
