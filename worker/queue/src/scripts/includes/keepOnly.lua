--[[
  Deletes a key of another type. A missing key is not deleted: after a DEL a script may write to a
  full Redis server (see storeVerdict).
]]
local function keepOnly(kind, key)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('DEL', key) end
end
