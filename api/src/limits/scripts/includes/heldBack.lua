--[[
  What delays the unknown devices of an account. `heldBack` returns their failures, including
  pending attempts, and the time until which the next attempt is delayed.
]]
--- @include "lapsing"
local LONGEST_DELAY = 3600000

-- Counts the pending attempts, and returns when the last of them began. Each lapses at its own time.
local function pendingAt(key, life)
  local pending = counted(key, life)
  local last = redis.call('ZREVRANGEBYSCORE', key, text(now + life), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return pending, last and math.min(now, tonumber(last) - life) or 0
end

local function heldBack(failed, pending, undelayed, life)
  local ended, failedAt = unpack(redis.call('HMGET', failed, 'failures', 'failedAt'))
  local underway, beganAt = pendingAt(pending, life)
  local failures = tonumber(ended or 0) + underway
  if failures == 0 or failures < undelayed then return failures, 0 end
  local delay = math.min(LONGEST_DELAY, 1000 * 2 ^ math.min(30, failures - undelayed))
  return failures, math.max(math.min(now, tonumber(failedAt or 0)), beganAt) + delay
end
