--[[
  Counts a request in a window. Returns the count and the milliseconds left: at most the length of the window, even if
  the key has a longer life.
]]
local function countRequestIn(key, window)
  local requests = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  if left < 0 or left > tonumber(window) then
    left = tonumber(window)
    redis.call('PEXPIRE', key, left)
  end
  return requests, left
end
