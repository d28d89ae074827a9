--[[
  Removes an entry from every list and set of the queue.
  BullMQ's remove fails on entries that are no jobs.
  Input:
    KEYS[1] waiting list
    KEYS[2] active list
    KEYS[3] deferred set
    KEYS[4] delayed set
    KEYS[5] completed set
    KEYS[6] failed set
    KEYS[7] job
    KEYS[8] lock of the job
    ARGV[1] entry
    ARGV[2] 1 to delete the job and its lock
  Output: 1 where the entry was in the queue, else 0
]]
local removed = 0
for i = 1, 2 do removed = removed + redis.call('LREM', KEYS[i], 0, ARGV[1]) end
for i = 3, 6 do removed = removed + redis.call('ZREM', KEYS[i], ARGV[1]) end
if ARGV[2] == '1' then redis.call('DEL', KEYS[7], KEYS[8]) end
return math.min(removed, 1)
