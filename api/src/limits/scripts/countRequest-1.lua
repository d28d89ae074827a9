--[[
  Counts a request in a fixed window, which begins with its first request. At most the length of the window is left, even
  if the key has a longer life.
  Input:
    KEYS[1] counter
    ARGV[1] length of the window in milliseconds
  Output: the count, and the milliseconds left
]]
local window = tonumber(ARGV[1])
local requests = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 or left > window then
  left = window
  redis.call('PEXPIRE', KEYS[1], left)
end
return {requests, left}
