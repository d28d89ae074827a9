/** The Lua scripts that count attempts. Redis runs a script as a whole: concurrent attempts cannot pass a bound together. */
import type { ClientContext, Result } from 'ioredis'
import { LUA_COUNTS } from '../limits/lua-counts.js'
import type { CountingRedis } from '../limits/shared-counts.js'

const WINDOW_MS = 60_000
const DELAY_MAX_MS = 3_600_000

/**
 * Lua: lets an attempt in, or not.
 * KEYS: the requests of the account this minute, its failures, the requests of the device this minute, its failures, the challenge; when the
 * devices of the account were forgotten, by its names of the key that signed the token and of the first key, the only one that the version
 * before wrote.
 * ARGV: when the token of a device was issued, 0 without one; the life of a solved challenge in milliseconds, 0 without one, -1 for an answer
 * that is not checked yet; the bounds of requests a minute, of failures of unknown devices together, of failures of one device, 0 for none;
 * undelayed failures; the memory of a device's failures; the memory of an account's.
 * Returns what becomes of it, the failures before it, a time in milliseconds, and the requests this minute. An answer that is not checked yet
 * is `unchecked` where the attempt needs it: then nothing was counted.
 */
const LET_IN = `${LUA_COUNTS}
local issued_at, challenge, per_minute = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local most, most_of_device, undelayed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local function forgotten_at()
  local at = math.max(count_at(KEYS[6]), count_at(KEYS[7]))
  -- The version before wrote seconds.
  if at < 1e11 then at = at * 1000 + 999 end
  return at
end
if issued_at > 0 and issued_at > forgotten_at() then
  local failures = count_at(KEYS[4])
  if failures < most_of_device then
    local requests, left = count_request(KEYS[3], ${WINDOW_MS})
    if per_minute > 0 and requests > per_minute then return {'device_too_many', failures, left, requests} end
    redis.call('SET', KEYS[4], failures + 1, 'PX', ARGV[7])
    return {'known', failures, 0, requests}
  end
end
keep_only('hash', KEYS[2])
local failures, delayed_until = unpack(redis.call('HMGET', KEYS[2], 'failures', 'delayedUntil'))
failures, delayed_until = to_count(failures), to_count(delayed_until)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local solved = challenge > 0 and redis.call('SET', KEYS[5], 1, 'NX', 'PX', challenge)
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
if most > 0 then
  local failed = failures + 1
  local delay = 0
  if failed >= undelayed then delay = math.min(${DELAY_MAX_MS}, 1000 * 2 ^ math.min(30, failed - undelayed)) end
  redis.call('HSET', KEYS[2], 'failures', failed, 'delayedUntil', string.format('%.0f', now + delay))
  redis.call('PEXPIRE', KEYS[2], ARGV[math.min(#ARGV, 7 + failed)])
end
return {solved and 'solved' or 'unknown', failures, 0, requests}`

/**
 * Lua: takes back an attempt that cost no hash.
 * KEYS: the failures of the account, those of the device, the challenge. ARGV: whether it was counted for the device, and whether it was let
 * in by a challenge. That one may be solved again, and spares no later attempt the delay that it spared this one.
 */
const TAKE_BACK = `${LUA_COUNTS}
if ARGV[1] == '1' then
  if count_at(KEYS[2]) > 0 then redis.call('DECR', KEYS[2]) end
else
  redis.call('DEL', KEYS[3])
  keep_only('hash', KEYS[1])
  if to_count(redis.call('HGET', KEYS[1], 'failures')) > 0 then
    redis.call('HINCRBY', KEYS[1], 'failures', -1)
    if ARGV[2] == '0' then redis.call('HSET', KEYS[1], 'delayedUntil', 0) end
  end
end`

export type AttemptOutcome =
  | 'known'
  | 'unknown'
  | 'solved'
  | 'unchecked'
  | 'too_many'
  | 'device_too_many'
  | 'delayed'
  | 'challenge'

export function defineAttemptScripts(connection: CountingRedis['connection']): void {
  connection.defineCommand('letAttemptIn', { numberOfKeys: 7, lua: LET_IN })
  connection.defineCommand('takeAttemptBack', { numberOfKeys: 3, lua: TAKE_BACK })
}

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    letAttemptIn(
      ...keysAndBounds: [...keys: [string, string, string, string, string, string, string], ...bounds: number[]]
    ): Result<[AttemptOutcome, number, number, number], Context>
    takeAttemptBack(
      ...keysAndCase: [account: string, device: string, challenge: string, isKnown: number, isSolved: number]
    ): Result<unknown, Context>
  }
}
