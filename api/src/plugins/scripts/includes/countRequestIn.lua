--[[
  Counts a request in a window. Returns the count and the milliseconds left: the window's length at most, whatever life
  the key was given.
]]
--- @include "countAt"
local function countRequestIn(key, window)
  countAt(key)
  local requests = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  if left < 0 or left > tonumber(window) then
    left = tonumber(window)
    redis.call('PEXPIRE', key, left)
  end
  return requests, left
end
