--[[
  Writes one worker's entry with the time, and its canary, and drops absent jobs past their
  deadline; nothing for a worker that must not begin. Keys of another type are deleted.
  Input:
    KEYS[1] capacity hash
    KEYS[2] waiting list
    KEYS[3] deferred set
    KEYS[4] active list
    KEYS[5] meta hash
    KEYS[6] canary
    KEYS[7] absent set
    KEYS[8] line
    KEYS[9] returned set
    ARGV[1] worker id
    ARGV[2] entry as JSON, without its time
    ARGV[3] life of the hash and of the canary in seconds
    ARGV[4] codes of the worker's keys
    ARGV[5] prefix of job keys
    ARGV[6] highest number of jobs to drop
    ARGV[7] difference by which scores of jobs that are behind are lower
    ARGV[8] 1 for a worker that takes jobs
    ARGV[9] milliseconds that an entry is fresh
    ARGV[10] milliseconds that a canary counts
  Output:
    {time} for a worker that must not begin
    {time, jobs that can be taken, dropped jobs, jobs in hand}: no job can be taken while the queue is paused, limited
    in its rate, or at its limit of active jobs
]]
--- @include "keepOnly"
--- @include "countAbandoned"
--- @include "epochMs"
--- @include "mayBegin"
local capacity, waiting, deferred, active, meta, canary, absent, line, returned = unpack(KEYS)
local now = epochMs()
local entry = cjson.decode(ARGV[2])
entry.at = now
keepOnly('hash', capacity)
keepOnly('zset', absent)
keepOnly('hash', line)
keepOnly('zset', returned)
if ARGV[8] ~= '1' then
  local entries = redis.call('HGETALL', capacity)
  if not mayBegin(ARGV[4], entries, now, tonumber(ARGV[9]), canary, ARGV[3] * 1000, tonumber(ARGV[10])) then return {now} end
end
redis.call('HSET', capacity, ARGV[1], cjson.encode(entry))
redis.call('EXPIRE', capacity, ARGV[3])
redis.call('SET', canary, ARGV[4], 'EX', ARGV[3])
local dropped = 0
for from, to in pairs({['-inf'] = now - ARGV[7], ['0'] = now}) do
  local abandoned = redis.call('ZRANGEBYSCORE', absent, from, to, 'LIMIT', 0, ARGV[6])
  for _, id in ipairs(abandoned) do redis.call('DEL', ARGV[5] .. id) end
  if #abandoned > 0 then redis.call('ZREM', absent, unpack(abandoned)) end
  dropped = dropped + #abandoned
end
if dropped > 0 then countAbandoned(line, dropped) end
redis.call('ZREMRANGEBYSCORE', returned, '-inf', now)
local paused, rate, limit = unpack(redis.call('HMGET', meta, 'paused', 'max', 'concurrency'))
local held = paused or rate or (limit and redis.call('LLEN', active) >= tonumber(limit))
local takeable = held and 0 or redis.call('LLEN', waiting) + redis.call('ZCARD', deferred)
return {now, takeable, dropped, redis.call('LLEN', active)}
