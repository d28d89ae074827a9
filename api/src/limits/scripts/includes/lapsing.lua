--[[
  Sorted sets of members that count for a time, scored by the time at which they lapse. `counted` counts the members
  that lapse within the next `life` milliseconds, and ignores later ones. `begin` adds a member, or renews its life.
  Neither deletes before it writes.
]]
--- @include "epochMs"
local now = epochMs()
local function text(number) return string.format('%.0f', number) end
local function counted(key, life)
  return redis.call('ZCOUNT', key, text(now), text(now + life))
end
local function begin(key, member, life)
  redis.call('ZADD', key, text(now + life), member)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(now))
  redis.call('PEXPIRE', key, life)
end
