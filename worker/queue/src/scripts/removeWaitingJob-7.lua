--[[
  Removes a job that waits, or waits for its client, with its only other key. BullMQ's remove also
  deletes finished jobs, and does not tell whether the job existed. For the last job of a known
  device, the job two places ahead becomes the last again (see moveForward): whoever adds jobs and
  goes away must not bring later ones before those that wait.
  Input:
    KEYS[1] waiting list
    KEYS[2] deferred set
    KEYS[3] job
    KEYS[4] key of the last job of a known device
    KEYS[5] absent set
    KEYS[6] present key of the job
    KEYS[7] returned set
    ARGV[1] job id
  Output: 1 where the job waited, else 0
]]
local waiting, deferred, job, lastKnown, absent, present, returned = unpack(KEYS)
local id = ARGV[1]
local index = redis.pcall('GET', lastKnown) == id and redis.call('LPOS', waiting, id)
local before = index and redis.call('LINDEX', waiting, index + 2)
local removed = redis.call('LREM', waiting, 1, id) + redis.call('ZREM', deferred, id) + redis.call('ZREM', absent, id)
if removed == 0 then return 0 end
redis.call('DEL', job, present)
redis.pcall('ZREM', returned, id)
if before then redis.call('SET', lastKnown, before, 'KEEPTTL') end
return 1
