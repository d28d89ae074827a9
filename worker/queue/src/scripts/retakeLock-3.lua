--[[
  Locks an active job again whose lock is gone.
  BullMQ's extendLock needs the lock to be there. Upstream: to take a lock that is gone.
  Input:
    KEYS[1] lock of the job
    KEYS[2] active list
    KEYS[3] stalled set
    ARGV[1] token of the lock
    ARGV[2] life of the lock in milliseconds
    ARGV[3] job id
  Output: 1; 0 where the job is locked, waits again or has ended
]]
if redis.call('EXISTS', KEYS[1]) == 1 or not redis.call('LPOS', KEYS[2], ARGV[3]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('SREM', KEYS[3], ARGV[3])
return 1
