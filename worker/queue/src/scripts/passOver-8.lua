--[[
  Takes an active job from the worker that has just taken it, unless its client is present. A
  client that is away as told yields once to held jobs, or dropped tickets would be hashed in the
  grace of each; a ticket that was redeemed before (`firm`) never yields. A job without a number is
  still being added: workers may take it sooner, unless it is behind. The job leaves the active list
  last: where the script fails before, another worker takes it over. BullMQ's moveToDelayed would
  count an absent job among those that can be taken, and checks no presence.
  Upstream: a condition for a move, and a set that is not promoted by time.
  Input:
    KEYS[1] present key of the job
    KEYS[2] lock of the job
    KEYS[3] active list
    KEYS[4] stalled set
    KEYS[5] absent set
    KEYS[6] job
    KEYS[7] waiting list
    KEYS[8] returned set
    ARGV[1] job id
    ARGV[2] token of the lock
    ARGV[3] deadline
    ARGV[4] 1 for a job that is behind, else 0
    ARGV[5] longest time away, with the grace, in milliseconds
    ARGV[6] difference by which scores of jobs that are behind are lower
  Output: 1 where the job was passed over; 0 where it is to be done, or another worker has it
]]
local present, lock, active, stalled, absent, job, waiting, returned = unpack(KEYS)
redis.pcall('ZREM', returned, ARGV[1])
local leftMs = redis.call('PTTL', present)
if leftMs ~= -2 then
  local now = redis.call('TIME')
  local lifeMs = ARGV[3] - now[1] * 1000 - now[2] / 1000
  local isAway = leftMs >= 0 and leftMs <= tonumber(ARGV[5]) and leftMs < lifeMs - 1000
  local mayYield = isAway and redis.call('HEXISTS', job, 'firm') == 0
  if not mayYield or redis.call('LLEN', waiting) == 0 then return 0 end
end
if ARGV[4] == '0' and redis.call('HEXISTS', job, 'number') == 0 then return 0 end
if redis.call('GET', lock) ~= ARGV[2] then return 0 end
redis.call('DEL', lock)
if leftMs ~= -2 and redis.call('EXISTS', job) == 1 then redis.call('HSET', job, 'firm', 1) end
redis.call('ZADD', absent, ARGV[3] - ARGV[4] * ARGV[6], ARGV[1])
redis.call('SREM', stalled, ARGV[1])
redis.call('LREM', active, -1, ARGV[1])
return 1
