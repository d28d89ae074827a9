--[[
  Whether a process may begin to take sealed jobs, by the codes of its keys: a living worker has
  keys that fit, or no living worker has others and neither had the workers of a moment ago. Two
  keyrings fit where each opens what the other seals.
  Parameters: own codes; names and values of the capacity hash; time; milliseconds that an entry is fresh; key of the
  canary, its life and how long it counts in milliseconds.
]]
local function fit(ours, theirs)
  local function has(list, code) return string.find(',' .. list .. ',', ',' .. code .. ',', 1, true) ~= nil end
  return has(ours, string.match(theirs, '^[^,]*')) and has(theirs, string.match(ours, '^[^,]*'))
end
local function mayBegin(ours, entries, now, freshMs, canaryKey, canaryLifeMs, canaryCountsMs)
  local hasOthers = false
  for n = 2, #entries, 2 do
    local read, entry = pcall(cjson.decode, entries[n])
    if read and type(entry) == 'table' and type(entry.keys) == 'string' and type(entry.at) == 'number' and
      math.abs(now - entry.at) <= freshMs then
      if fit(ours, entry.keys) then return true end
      hasOthers = true
    end
  end
  if hasOthers then return false end
  local canary = redis.pcall('GET', canaryKey)
  local age = canaryLifeMs - redis.call('PTTL', canaryKey)
  return type(canary) ~= 'string' or fit(ours, canary) or age < 0 or age > canaryCountsMs
end
