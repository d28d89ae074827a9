--[[
  Deletes entries of workers that ended without deleting theirs, and entries without a time. Other
  fields are not checked: an entry may be of a newer version.
  Input:
    KEYS[1] capacity hash
    ARGV[1] seconds that an entry is kept
  Output: 1
]]
--- @include "epochMs"
local now = epochMs()
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local isJson, entry = pcall(cjson.decode, fields[i + 1])
  local at = isJson and type(entry) == 'table' and entry.at
  local isFresh = type(at) == 'number' and math.abs(now - at) <= ARGV[1] * 1000
  if not isFresh then redis.call('HDEL', KEYS[1], fields[i]) end
end
return 1
