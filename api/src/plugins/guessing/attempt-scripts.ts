/**
 * The two Lua scripts of an attempt at a password: one begins it and one ends it, each for its address, for its account, or for both. Redis
 * runs a script as a whole, so concurrent attempts cannot pass a bound together.
 */
import { defineLua } from '@spillway/queue/redis/script'
import { LUA_LAPSING } from '../counts.js'

const WINDOW_MS = 60_000
const DELAY_MAX_MS = 3_600_000
/** Devices of an account that are counted each by itself at a time; others count as unknown. Each is from a login with the right password. */
const FAILED_DEVICES_MAX = 100

/**
 * Lua: counts an attempt, its redemption, or a request without an attempt. As a function. KEYS: failures, pending attempts, those behind. ARGV: the attempt, or another id; `attempt`, `redemption` or `request`; the
 * limit, the window, the life of a pending attempt, the life and the number of those behind. Returns its outcome, how many count, and
 * milliseconds: until the failures are fewer than the limit, or for an admitted request until the first of them lapses.
 */
const LUA_COUNT_FOR_ADDRESS = `
local function count_for_address(KEYS, ARGV)
local failed, pending, behind = unpack(KEYS)
local id, kind, most, window, life = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local failures = counted(failed, window)
local function left(index)
  local score = redis.call('ZRANGEBYSCORE', failed, text(now), text(now + window), 'WITHSCORES', 'LIMIT', index, 1)[2]
  return score and math.max(1, tonumber(score) - now) or window
end
local attempts = counted(pending, life)
local all = failures + attempts
local lapses = tonumber(redis.call('ZSCORE', pending, id) or 0)
local is_pending = lapses >= now and lapses <= now + life
-- It is answered: its ticket is used.
if kind == 'redemption' and redis.call('ZSCORE', failed, id) then return {'counted', all, left(0)} end
if not is_pending and failures >= most then return {'refused', failures, left(failures - most)} end
if kind == 'request' then
  begin(failed, id, window)
  return {'counted', all + 1, left(0)}
end
if is_pending or all < most then
  keep_only('zset', behind)
  begin(pending, id, life)
  redis.call('ZREM', behind, id)
  return {'counted', is_pending and all or all + 1, left(0)}
end
if kind == 'redemption' then return {'behind', all, left(0)} end
if counted(behind, tonumber(ARGV[6])) >= tonumber(ARGV[7]) then return {'crowded', all, left(0)} end
begin(behind, id, tonumber(ARGV[6]))
return {'behind', all, left(0)}
end`
/** Lua: how many attempts are pending, and when the last of them began. Each lapses at a time of its own. */
const LUA_PENDING = `
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
const LUA_LET_IN = `
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
/**
 * Begins an attempt: for its address with 3 keys, for its account with 7, for both with 10. An attempt that its address refuses does not count
 * for its account. KEYS and ARGV: of count_for_address, then of let_in. Returns both answers, each false where it is not asked for.
 */
export const beginAttempt = defineLua(`${LUA_LAPSING}${LUA_COUNT_FOR_ADDRESS}${LUA_PENDING}${LUA_LET_IN}
local of_address, keys, args = false, 0, 0
if #KEYS ~= 7 then
  of_address, keys, args = count_for_address({unpack(KEYS, 1, 3)}, {unpack(ARGV, 1, 7)}), 3, 7
  if #KEYS == 3 or of_address[1] == 'refused' or of_address[1] == 'crowded' then return {of_address, false} end
end
return {of_address, let_in({unpack(KEYS, keys + 1)}, {unpack(ARGV, args + 1)})}`)

/**
 * Lua: ends an attempt, as a function. KEYS: as above. ARGV: the attempt, whether it failed (1 or 0), the window.
 * ZREM comes first because of a full Redis: what follows a write is not refused.
 */
const LUA_END_FOR_ADDRESS = `
local function end_for_address(KEYS, ARGV)
keep_only('zset', KEYS[2])
keep_only('zset', KEYS[3])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if ARGV[2] == '0' then return 0 end
keep_only('zset', KEYS[1])
begin(KEYS[1], ARGV[1], tonumber(ARGV[3]))
return 1
end`
/**
 * Lua: settles an attempt, as a function. A failure counts although its attempt has lapsed; what taught nobody anything never happened, and its challenge
 * may be solved again.
 * KEYS: the failures of the account, its pending attempts; the failures of its devices, the pending attempts of the device; the challenge,
 * of one that it was let in by.
 * ARGV: the attempt; `failed`, `succeeded` or `nothing`; the device, empty for an unknown one; the memory of a device's failures; the memory
 * of an account's, by their number.
 */
const LUA_SETTLE = `
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
/** Ends an attempt: for its address with 3 keys, for its account with 5, for both with 8. KEYS and ARGV: of end_for_address, then of settle. */
export const endAttempt = defineLua(`${LUA_LAPSING}${LUA_PENDING}${LUA_END_FOR_ADDRESS}${LUA_SETTLE}
local keys, args = 0, 0
if #KEYS ~= 5 then
  end_for_address({unpack(KEYS, 1, 3)}, {unpack(ARGV, 1, 3)})
  keys, args = 3, 3
end
return #KEYS > 3 and settle({unpack(KEYS, keys + 1)}, {unpack(ARGV, args + 1)}) or 1`)

export const attemptOutcomes = [
  ...(['known', 'unknown', 'solved', 'unchecked'] as const),
  ...(['too_many', 'device_too_many', 'delayed', 'challenge'] as const),
]
export type AttemptOutcome = (typeof attemptOutcomes)[number]
