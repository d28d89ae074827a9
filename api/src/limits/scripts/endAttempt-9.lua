--[[
  Ends an attempt at a password, with the keys of takeAttempt: for its address, for its account, or for both. A failure counts even if its attempt has
  lapsed. An attempt that ends with nothing is not counted. ZREM comes first, because a full Redis server refuses
  no command after the first write of a script.
  Input:
    KEYS[1] failures of the address
    KEYS[2] pending attempts of the address
    KEYS[3] attempts of the address that wait behind
    KEYS[4] requests of the account this minute; not used
    KEYS[5] failures of the account
    KEYS[6] pending attempts of the account
    KEYS[7] requests of the device this minute; not used
    KEYS[8] failures of the account's devices
    KEYS[9] pending attempts of the device
    ARGV[1] attempt
    ARGV[2] milliseconds that a failure counts for the address; empty: not ended for it
    ARGV[3] failed, succeeded or nothing
    ARGV[4] for its account: 1; empty: not ended for it
    ARGV[5] device; empty for an unknown one
    ARGV[6] milliseconds that failures of a device are remembered
    ARGV[7...] milliseconds that one, two and more failures of an account are remembered
  Output: 1
]]
--- @include "lapsing"
local attempt, outcome, device = ARGV[1], ARGV[3], ARGV[5]
if ARGV[2] ~= '' then
  redis.call('ZREM', KEYS[2], attempt)
  redis.call('ZREM', KEYS[3], attempt)
  if outcome == 'failed' then
    begin(KEYS[1], attempt, tonumber(ARGV[2]))
  end
end
if ARGV[4] == '' then return 1 end
local failures, pending = KEYS[5], KEYS[6]
if device ~= '' then failures, pending = KEYS[8], KEYS[9] end
redis.call('ZREM', pending, attempt)
if outcome == 'nothing' then return 1 end
if device == '' then
  if outcome == 'succeeded' then
    redis.call('DEL', failures)
    return 1
  end
  local failed = tonumber(redis.call('HGET', failures, 'failures') or 0) + 1
  redis.call('HSET', failures, 'failures', failed, 'failedAt', text(now))
  redis.call('PEXPIRE', failures, ARGV[math.min(#ARGV, 6 + failed)])
else
  if outcome == 'succeeded' then
    redis.call('HDEL', failures, device)
    return 1
  end
  redis.call('HSET', failures, device, tonumber(redis.call('HGET', failures, device) or 0) + 1)
  redis.call('PEXPIRE', failures, ARGV[6])
end
return 1
