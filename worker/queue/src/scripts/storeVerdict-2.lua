--[[
  Stores a verdict, then announces it, last: the delivery of a script that fails is repeated.
  DEL comes first because of a full Redis server. It checks its memory limit only at the first
  write of a script, and only for commands that may need memory, as SET may. BullMQ's completion
  script begins with a DEL too: without this one, jobs would complete whose verdicts were refused.
  The excess is under a kilobyte until the deadline, for each job accepted before.
  Input:
    KEYS[1] verdict
    KEYS[2] present key of the job
    ARGV[1] sealed verdict
    ARGV[2] milliseconds to keep it
    ARGV[3] prefix of reply channels
    ARGV[4] reply address of the gateway that added the job
    ARGV[5] job id
  Output: 1
]]
--- @include "announce"
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
announce(ARGV[3], ARGV[4], KEYS[2], ARGV[5], ARGV[1])
return 1
