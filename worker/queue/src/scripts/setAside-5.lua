--[[
  Takes an active job from its worker, keeps it as an absent one, and at last announces why: who
  waits gets an answer now, a ticket stays pending, and the job is next when its client comes again.
  BullMQ's moveToDelayed announces nothing, and gives back a job by time. Upstream: as passOver.
  Input:
    KEYS[1] lock of the job
    KEYS[2] active list
    KEYS[3] stalled set
    KEYS[4] absent set
    KEYS[5] present key of the job
    ARGV[1] job id
    ARGV[2] token of the lock
    ARGV[3] deadline
    ARGV[4] sealed verdict
    ARGV[5] prefix of reply channels
    ARGV[6] reply address of the gateway that added the job
  Output: 1; 0 where another worker has the job
]]
--- @include "announce"
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
redis.call('SREM', KEYS[3], ARGV[1])
redis.call('LREM', KEYS[2], -1, ARGV[1])
announce(ARGV[5], ARGV[6], KEYS[5], ARGV[1], ARGV[4])
return 1
