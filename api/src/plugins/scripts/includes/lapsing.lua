--[[
  Sorted sets of what counts for a while: each member with the time at which it lapses. `counted` is how many count; a
  member that was given a longer life does not. `begin` adds a member, or gives it its life again. Neither deletes before
  it writes.
]]
--- @include "keepOnly"
--- @include "epochMs"
local now = epochMs()
local function text(number) return string.format('%.0f', number) end
local function counted(key, life)
  keepOnly('zset', key)
  return redis.call('ZCOUNT', key, text(now), text(now + life))
end
local function begin(key, member, life)
  redis.call('ZADD', key, text(now + life), member)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(now))
  redis.call('PEXPIRE', key, life)
end
