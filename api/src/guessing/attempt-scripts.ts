/** The Lua scripts that count attempts. Redis runs a script as a whole: concurrent attempts cannot pass a bound together. */
import type { ClientContext, Result } from 'ioredis'
import { LUA_COUNT_FOR_ADDRESS, LUA_END_FOR_ADDRESS } from '../limits/address-attempts.js'
import { LUA_LAPSING } from '../limits/request-counts.js'
import type { CountingRedis } from '../limits/shared-counts.js'

const WINDOW_MS = 60_000
const DELAY_MAX_MS = 3_600_000
/** Devices of an account that are counted each by itself at a time; others count as unknown. Each is from a login with the right password. */
const FAILED_DEVICES_MAX = 100

/** Lua: how many attempts are pending, and when the last of them began. Each lapses at a time of its own. */
const LUA_PENDING = `${LUA_LAPSING}
local function pending_at(key, life)
  local pending = counted(key, life)
  local last = redis.call('ZREVRANGEBYSCORE', key, text(now + life), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return pending, last and math.min(now, tonumber(last) - life) or 0
end`

/**
 * Lua: lets an attempt in, or not, as a function. One that is let in is pending: until it is settled, or lapses, it counts as a failure.
 * KEYS: the requests of the account this minute, its failures, its pending attempts; the requests of the device this minute, the failures of
 * the account's devices, the pending attempts of the device; the challenge.
 * ARGV: the device, empty for an unknown one; the life of a solved challenge in milliseconds, 0 without one, -1 for an answer that is not
 * checked yet; the bounds of requests a minute, of failures of unknown devices together, of failures of one device, 0 for no bound; undelayed
 * failures; the attempt, and its life in milliseconds.
 * Returns what becomes of it, the failures before it, a time in milliseconds, and the requests this minute. An answer that is not checked yet
 * is `unchecked` where the attempt needs it: then nothing was counted.
 */
const LUA_LET_IN = `${LUA_PENDING}
local function let_in(KEYS, ARGV)
local device, challenge, per_minute = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local most, most_of_device, undelayed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local attempt, life = ARGV[7], tonumber(ARGV[8])
if device ~= '' then
  keep_only('hash', KEYS[5])
  local failed = to_count(redis.call('HGET', KEYS[5], device))
  local failures = failed + pending_at(KEYS[6], life)
  local is_counted = failed > 0 or redis.call('HLEN', KEYS[5]) < ${FAILED_DEVICES_MAX}
  if failures < most_of_device and is_counted then
    local requests, left = count_request(KEYS[4], ${WINDOW_MS})
    if per_minute > 0 and requests > per_minute then return {'device_too_many', failures, left, requests} end
    begin(KEYS[6], attempt, life)
    return {'known', failures, 0, requests}
  end
end
keep_only('hash', KEYS[2])
local failed, failed_at = unpack(redis.call('HMGET', KEYS[2], 'failures', 'failedAt'))
local pending, began_at = pending_at(KEYS[3], life)
local failures = to_count(failed) + pending
local delayed_until = 0
if failures > 0 and failures >= undelayed then
  local delay = math.min(${DELAY_MAX_MS}, 1000 * 2 ^ math.min(30, failures - undelayed))
  delayed_until = math.max(math.min(now, to_count(failed_at)), began_at) + delay
end
local solved = challenge > 0 and redis.call('SET', KEYS[7], 1, 'NX', 'PX', challenge)
local requests = 0
if not solved then
  if challenge < 0 then
    local is_held = most > 0 and (failures >= most or delayed_until > now)
    if is_held or per_minute > 0 and count_at(KEYS[1]) >= per_minute then return {'unchecked', failures, 0, 0} end
  end
  local left
  requests, left = count_request(KEYS[1], ${WINDOW_MS})
  if most > 0 and failures >= most then return {'challenge', failures, 0, requests} end
  if most > 0 and delayed_until > now then return {'delayed', failures, delayed_until - now, requests} end
  if per_minute > 0 and requests > per_minute then return {'too_many', failures, left, requests} end
end
if most > 0 then begin(KEYS[3], attempt, life) end
return {solved and 'solved' or 'unknown', failures, 0, requests}
end`
const LET_IN = `${LUA_LET_IN}
return let_in(KEYS, ARGV)`

/**
 * Lua: the same, of an attempt that counts for its address first: one that is refused there does not count for its account. KEYS and ARGV:
 * of count_for_address, then of let_in. Returns both answers, or the first alone where it refuses.
 */
const COUNT_AND_LET_IN = `${LUA_LET_IN}${LUA_COUNT_FOR_ADDRESS}
local of_address = count_for_address({unpack(KEYS, 1, 3)}, {unpack(ARGV, 1, 7)})
if of_address[1] == 'refused' or of_address[1] == 'crowded' then return {of_address} end
return {of_address, let_in({unpack(KEYS, 4)}, {unpack(ARGV, 8)})}`

/**
 * Lua: settles an attempt, as a function. A failure counts although its attempt has lapsed; what taught nobody anything never happened, and its challenge
 * may be solved again.
 * KEYS: the failures of the account, its pending attempts; the failures of its devices, the pending attempts of the device; the challenge,
 * of one that it was let in by.
 * ARGV: the attempt; `failed`, `succeeded` or `nothing`; the device, empty for an unknown one; the memory of a device's failures; the memory
 * of an account's, by their number.
 */
const LUA_SETTLE = `${LUA_PENDING}
local function settle(KEYS, ARGV)
local attempt, outcome, device = ARGV[1], ARGV[2], ARGV[3]
local failures, pending = KEYS[1], KEYS[2]
if device ~= '' then failures, pending = KEYS[3], KEYS[4] end
keep_only('zset', pending)
keep_only('hash', failures)
redis.call('ZREM', pending, attempt)
if outcome == 'nothing' then
  redis.call('DEL', KEYS[5])
elseif device == '' then
  if outcome == 'succeeded' then return redis.call('DEL', failures) end
  local failed = to_count(redis.call('HGET', failures, 'failures')) + 1
  redis.call('HSET', failures, 'failures', failed, 'failedAt', text(now))
  redis.call('PEXPIRE', failures, ARGV[math.min(#ARGV, 4 + failed)])
else
  if outcome == 'succeeded' then return redis.call('HDEL', failures, device) end
  redis.call('HSET', failures, device, to_count(redis.call('HGET', failures, device)) + 1)
  redis.call('PEXPIRE', failures, ARGV[4])
end
return 1
end`
const SETTLE = `${LUA_SETTLE}
return settle(KEYS, ARGV)`

/** Lua: ends an attempt for its address, and settles it. KEYS and ARGV: first for end_for_address, then for settle. */
const END_AND_SETTLE = `${LUA_SETTLE}${LUA_END_FOR_ADDRESS}
end_for_address({unpack(KEYS, 1, 3)}, {unpack(ARGV, 1, 3)})
return settle({unpack(KEYS, 4)}, {unpack(ARGV, 4)})`

export const attemptOutcomes = [
  ...(['known', 'unknown', 'solved', 'unchecked'] as const),
  ...(['too_many', 'device_too_many', 'delayed', 'challenge'] as const),
]
export type AttemptOutcome = (typeof attemptOutcomes)[number]

export function defineAttemptScripts(connection: CountingRedis['connection']): void {
  connection.defineCommand('letAttemptIn', { numberOfKeys: 7, lua: LET_IN })
  connection.defineCommand('settleAttempt', { numberOfKeys: 5, lua: SETTLE })
  connection.defineCommand('countAndLetIn', { numberOfKeys: 10, lua: COUNT_AND_LET_IN })
  connection.defineCommand('endAndSettle', { numberOfKeys: 8, lua: END_AND_SETTLE })
}

/** The keys, then the arguments. */
type KeysAndArgs = readonly (string | number)[]

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    letAttemptIn(...input: KeysAndArgs): Result<unknown, Context>
    settleAttempt(...input: KeysAndArgs): Result<unknown, Context>
    countAndLetIn(...input: KeysAndArgs): Result<unknown, Context>
    endAndSettle(...input: KeysAndArgs): Result<unknown, Context>
  }
}
