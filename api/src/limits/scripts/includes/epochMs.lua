--[[
  Time of the Redis server in epoch milliseconds.
]]
local function epochMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
