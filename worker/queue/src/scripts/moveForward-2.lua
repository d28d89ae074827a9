--[[
  Moves a job of a known device forward: behind one other job, or behind the last such job and one
  other while that waits, so that others have room. LREM comes first because of a full Redis server
  (see storeVerdict). BullMQ's `lifo` would put it first, and its priorities run after jobs without
  one. Upstream: an option `after` with a job id.
  Input:
    KEYS[1] waiting list
    KEYS[2] key of the last job of a known device
    ARGV[1] job id
    ARGV[2] number of entries to search for the last one
    ARGV[3] milliseconds to remember this one
  Output: 1 where the job waited, else 0
]]
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
local last = redis.pcall('GET', KEYS[2])
local index = type(last) == 'string' and redis.call('LPOS', KEYS[1], last, 'RANK', -1, 'MAXLEN', ARGV[2])
local ahead = index and redis.call('LLEN', KEYS[1]) - index + 1 or 1
local follows = redis.call('LINDEX', KEYS[1], -ahead)
if follows then redis.call('LINSERT', KEYS[1], 'BEFORE', follows, ARGV[1]) else redis.call('LPUSH', KEYS[1], ARGV[1]) end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
return 1
