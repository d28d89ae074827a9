--[[
  Reads the load: all that admission needs. Drops absent jobs beyond their cap: the oldest that are
  behind, then the oldest. A key of another type says nothing; workers delete it.
  Input:
    KEYS[1] capacity hash
    KEYS[2] waiting list
    KEYS[3] deferred set
    KEYS[4] active list
    KEYS[5] key of the last job of a known device
    KEYS[6] absent set
    KEYS[7] line
    KEYS[8] returned set
    KEYS[9] meta hash
    ARGV[1] number of entries of the waiting list to search for that job
    ARGV[2] number of the reading
    ARGV[3] prefix of job keys
    ARGV[4] first score of deferred jobs
    ARGV[5] first score of jobs that are behind
    ARGV[6] cap of absent and returned jobs; -1 without a cap
    ARGV[7] highest number of jobs to drop
  Output:
    {number of the reading, time, waiting, deferred, active, absent, returned, names and values of the capacity hash,
    place behind which moveForward would put a job, number of the first deferred job or 0, last number given or 0,
    1 where that job is behind, 1 where the queue is paused}: a job whose client came back is not the first, because its
    turn was before; its score is no whole number
]]
--- @include "countAbandoned"
--- @include "epochMs"
--- @include "toCount"
local capacity, waitingKey, deferred, active, lastKnown, absentKey, line, returnedKey, meta = unpack(KEYS)
local function ask(command, ...)
  local reply = redis.pcall(command, ...)
  return type(reply) == 'table' and reply.err and {} or reply
end
local function length(command, key)
  local reply = ask(command, key)
  return type(reply) == 'number' and reply or 0
end
local waiting = length('LLEN', waitingKey)
local last = redis.pcall('GET', lastKnown)
local index = type(last) == 'string' and waiting > 0 and redis.call('LPOS', waitingKey, last, 'RANK', -1, 'MAXLEN', ARGV[1])
local first, score
local entries = ask('ZRANGEBYSCORE', deferred, ARGV[4], '+inf', 'WITHSCORES', 'LIMIT', 0, 8)
for i = 1, #entries, 2 do
  if not first and entries[i + 1] % 1 == 0 then first, score = entries[i], entries[i + 1] end
end
local absent, returned = length('ZCARD', absentKey), length('ZCARD', returnedKey)
local cap = tonumber(ARGV[6])
local excess = cap < 0 and 0 or math.min(absent, absent + returned - cap, tonumber(ARGV[7]))
if excess > 0 then
  for _, id in ipairs(redis.call('ZRANGE', absentKey, 0, excess - 1)) do redis.call('DEL', ARGV[3] .. id) end
  redis.call('ZREMRANGEBYRANK', absentKey, 0, excess - 1)
  countAbandoned(line, excess)
  absent = absent - excess
end
return {tonumber(ARGV[2]), epochMs(), waiting, length('ZCARD', deferred), length('LLEN', active), absent, returned,
  ask('HGETALL', capacity), index and waiting - index + 1 or 1,
  toCount(first and redis.pcall('HGET', ARGV[3] .. first, 'number')), toCount(redis.pcall('HGET', line, 'number')),
  score and tonumber(score) >= tonumber(ARGV[5]) and 1 or 0, redis.pcall('HEXISTS', meta, 'paused') == 1 and 1 or 0}
