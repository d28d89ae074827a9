--[[
  Removes what BullMQ cannot have written, and its scripts would fail at or wait for. Without an
  end, `stalled-check` and locks stop recovery. After an event with the highest id none can follow.
  Input:
    KEYS[1] stalled set
    KEYS[2] waiting list
    KEYS[3] active list
    KEYS[4] deferred set
    KEYS[5] delayed set
    KEYS[6] completed set
    KEYS[7] failed set
    KEYS[8] marker
    KEYS[9] meta hash
    KEYS[10] counter of ids
    KEYS[11] counter of priorities
    KEYS[12] limiter
    KEYS[13] stalled-check
    KEYS[14] stream of events
    ARGV[1] prefix of job keys
    ARGV[2] number of active jobs whose locks are looked at
    ARGV[3] longest life of a lock in milliseconds
    ARGV[4] highest number of events to keep
    ARGV[5...] type of each key
  Output: names of what was removed
]]
--- @include "toCount"
local prefix, locks, lockMost, eventsMost = unpack(ARGV)
local active, meta, id, priorities, limiter, check, events = KEYS[3], unpack(KEYS, 9)
local removed = {}
local function remove(key)
  redis.call('DEL', key)
  removed[#removed + 1] = key
end
for n, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key).ok
  if found ~= ARGV[4 + n] and found ~= 'none' then remove(key) end
end
for _, key in ipairs({id, priorities, limiter}) do
  local text = redis.call('GET', key)
  if text and text ~= '0' and toCount(text) == 0 then remove(key) end
end
local function isEndless(key)
  local left = redis.call('PTTL', key)
  return left == -1 or left > tonumber(lockMost)
end
if isEndless(check) then remove(check) end
for _, job in ipairs(redis.call('LRANGE', active, 0, locks - 1)) do
  local lock = prefix .. job .. ':lock'
  if isEndless(lock) then remove(lock) end
end
local function removeField(field)
  redis.call('HDEL', meta, field)
  removed[#removed + 1] = meta .. ' ' .. field
end
local paused, concurrency, max, duration, kept =
  unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max', 'duration', 'opts.maxLenEvents'))
if paused and paused ~= '1' then removeField('paused') end
if concurrency and toCount(concurrency) == 0 then removeField('concurrency') end
if max and (toCount(max) == 0 or toCount(duration) == 0) then removeField('max') end
if duration and toCount(duration) == 0 then removeField('duration') end
if kept and (toCount(kept) == 0 or toCount(kept) > tonumber(eventsMost)) then removeField('opts.maxLenEvents') end
if redis.call('EXISTS', events) == 1 then
  local facts = redis.call('XINFO', 'STREAM', events)
  for n = 1, #facts, 2 do
    if facts[n] == 'last-generated-id' then
      local ms = tonumber(string.match(facts[n + 1], '^%d+'))
      if ms > redis.call('TIME')[1] * 1000 + 86400000 then remove(events) end
    end
  end
end
return removed
