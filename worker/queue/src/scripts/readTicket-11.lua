--[[
  Reads a ticket, and with a reply address marks its client as present. An absent job is then the
  next to be taken: it goes before the first of the line, or behind one of the line after the job
  that came back last and still waits. A job that was held until now has no number. From now on it
  is passed over as deferred ones are: it gets their priority, which workers read, and keeps its
  place. Any other job's turn becomes `firm`: its client follows its ticket. DEL comes first
  because of a full Redis server: see storeVerdict. BullMQ has getState and getCountsPerPriority,
  but no rank of a job. Upstream: `getRank(id)`.
  Input:
    KEYS[1] verdict
    KEYS[2] present key of the job
    KEYS[3] job
    KEYS[4] deferred set
    KEYS[5] waiting list
    KEYS[6] active list
    KEYS[7] absent set
    KEYS[8] marker
    KEYS[9] meta hash
    KEYS[10] line
    KEYS[11] returned set
    ARGV[1] job id
    ARGV[2] number of entries of the waiting list to search
    ARGV[3] first score of deferred jobs
    ARGV[4] reply address or nothing
    ARGV[5] milliseconds that the client is present
    ARGV[6] priority of deferred jobs
    ARGV[7] first score of jobs that are behind
    ARGV[8] deadline
  Output:
    {verdict or 0 (1: a key of another type), 1 where the job exists, its number or 0, deferred jobs ahead, other jobs
    ahead}: nothing is ahead of active and finished jobs
]]
--- @include "keepOnly"
--- @include "toCount"
--- @include "isFailed"
local verdictKey, present, job, deferred, waitingKey, activeKey, absent, marker, meta, line, returned = unpack(KEYS)
local id, isPresent = ARGV[1], ARGV[4] ~= ''
if isPresent then
  redis.call('DEL', present)
  redis.call('SET', present, ARGV[4], 'PX', ARGV[5])
end
local verdict = redis.pcall('GET', verdictKey)
if type(verdict) == 'string' then return {verdict, 1, 0, 0, 0} end
local state = verdict and 1 or 0
keepOnly('hash', job)
local number = toCount(redis.call('HGET', job, 'number'))
local exists = isFailed(job) and 0 or redis.call('EXISTS', job)
if isPresent and exists == 1 then
  if redis.call('HSETNX', job, 'number', 0) == 0 then
    redis.call('HSET', job, 'firm', 1)
  else
    local read, opts = pcall(cjson.decode, redis.call('HGET', job, 'opts'))
    if read and type(opts) == 'table' and not opts.priority then
      opts.priority = tonumber(ARGV[6])
      redis.call('HSET', job, 'opts', cjson.encode(opts))
    end
  end
end
keepOnly('hash', line)
keepOnly('zset', returned)
if isPresent and redis.call('ZREM', absent, id) == 1 then
  local last = redis.pcall('HGET', line, 'returned')
  local after = type(last) == 'string' and tonumber(redis.call('ZSCORE', deferred, last) or '')
  local first = after and '(' .. after or ARGV[3]
  local following = redis.call('ZRANGEBYSCORE', deferred, first, '(' .. ARGV[7], 'WITHSCORES', 'LIMIT', 0, 2)
  local score
  if not after then score = (following[2] or ARGV[3] + 1) - 0.5
  elseif following[4] then score = following[4] - 0.5
  else score = following[2] and following[2] + 0.5 or after + 1 end
  redis.call('ZADD', deferred, score, id)
  redis.call('ZADD', returned, ARGV[8], id)
  redis.call('HSET', line, 'returned', id)
  if redis.call('HEXISTS', meta, 'paused') == 0 then redis.call('ZADD', marker, 0, '0') end
end
local waiting = redis.call('LLEN', waitingKey)
local active = redis.call('LLEN', activeKey)
local rank = redis.call('ZRANK', deferred, id)
if rank then return {state, exists, number, rank, waiting + active} end
local index = redis.call('LPOS', waitingKey, id, 'RANK', -1, 'MAXLEN', ARGV[2])
if index then return {state, exists, number, 0, waiting - 1 - index + active} end
return {state, exists, number, 0, waiting > tonumber(ARGV[2]) and waiting + active or 0}
