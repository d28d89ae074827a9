--[[
  What holds the unknown devices of an account back: `heldBack` returns their failures, pending
  attempts included, and the time until which the next attempt is delayed.
]]
--- @include "lapsing"
--- @include "toCount"
local LONGEST_DELAY = 3600000

-- How many attempts are pending, and when the last of them began. Each lapses at a time of its own.
local function pendingAt(key, life)
  local pending = counted(key, life)
  local last = redis.call('ZREVRANGEBYSCORE', key, text(now + life), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return pending, last and math.min(now, tonumber(last) - life) or 0
end

local function heldBack(failed, pending, undelayed, life)
  keepOnly('hash', failed)
  local ended, failedAt = unpack(redis.call('HMGET', failed, 'failures', 'failedAt'))
  local underway, beganAt = pendingAt(pending, life)
  local failures = toCount(ended) + underway
  if failures == 0 or failures < undelayed then return failures, 0 end
  local delay = math.min(LONGEST_DELAY, 1000 * 2 ^ math.min(30, failures - undelayed))
  return failures, math.max(math.min(now, toCount(failedAt)), beganAt) + delay
end
