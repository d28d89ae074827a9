--[[
  Reads the report of the queue.
  BullMQ's getJobCounts and getJobs take seven commands, and throw at data that somebody forged.
  Input:
    KEYS[1] capacity hash
    KEYS[2] waiting list
    KEYS[3] deferred set
    KEYS[4] active list
    KEYS[5] completed set
    KEYS[6] failed set
    KEYS[7] meta hash
    KEYS[8] absent set
    KEYS[9] line
    ARGV[1] prefix of job keys
    ARGV[2] highest number of completed, and of failed, jobs to read
    ARGV[3] highest age of these in milliseconds
  Output:
    {time, waiting, deferred, active, completed, failed, 1 where the queue is paused, data of the next held job, data of
    the next deferred job, results of completed jobs, names and values of the capacity hash, absent, abandoned,
    number of failed jobs, reason of the last of them}
]]
--- @include "epochMs"
--- @include "toCount"
local capacity, waiting, deferred, active, completed, failed, meta, absent, line = unpack(KEYS)
local now = epochMs()
local function textOf(id, field)
  local text = id and redis.pcall('HGET', ARGV[1] .. id, field)
  return type(text) == 'string' and text or ''
end
local results = {}
for i, id in ipairs(redis.call('ZREVRANGEBYSCORE', completed, '+inf', now - ARGV[3], 'LIMIT', 0, ARGV[2])) do
  results[i] = textOf(id, 'returnvalue')
end
local failures = redis.call('ZREVRANGEBYSCORE', failed, '+inf', now - ARGV[3], 'LIMIT', 0, ARGV[2])
return {now, redis.call('LLEN', waiting), redis.call('ZCARD', deferred), redis.call('LLEN', active),
  redis.call('ZCARD', completed), redis.call('ZCARD', failed), redis.call('HEXISTS', meta, 'paused'),
  textOf(redis.call('LINDEX', waiting, -1), 'data'), textOf(redis.call('ZRANGE', deferred, 0, 0)[1], 'data'),
  results, redis.call('HGETALL', capacity), redis.call('ZCARD', absent), toCount(redis.pcall('HGET', line, 'abandoned')),
  #failures, textOf(failures[1], 'failedReason')}
