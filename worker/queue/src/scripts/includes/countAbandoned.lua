--[[
  Counts dropped tickets in the hash of the line.
]]
--- @include "keepOnly"
--- @include "toCount"
local function countAbandoned(line, count)
  keepOnly('hash', line)
  redis.call('HSET', line, 'abandoned', toCount(redis.call('HGET', line, 'abandoned')) + count)
end
