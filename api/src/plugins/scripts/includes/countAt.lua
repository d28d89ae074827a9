--[[
  The count of a key. Any other value is deleted: a script would fail for as long as it stays, and a request that cannot
  be counted is admitted.
]]
--- @include "keepOnly"
--- @include "toCount"
local function countAt(key)
  keepOnly('string', key)
  local text = redis.call('GET', key)
  local count = toCount(text)
  if text and count == 0 then redis.call('DEL', key) end
  return count
end
