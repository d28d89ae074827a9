--[[
  Writes the canary of a queue whose takers publish no capacity.
  Input:
    KEYS[1] canary
    ARGV[1] codes of own keys
    ARGV[2] life of the canary in seconds
    ARGV[3] 1 for a process that takes jobs
    ARGV[4] milliseconds that a canary counts
  Output:
    'refused': the takers have other keys, and nothing was written
    'shared': they have, and this one takes jobs, too
    'alone': nobody has other keys
]]
--- @include "mayBegin"
local may = mayBegin(ARGV[1], {}, 0, 0, KEYS[1], ARGV[2] * 1000, tonumber(ARGV[4]))
if ARGV[3] ~= '1' and not may then return 'refused' end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return may and 'alone' or 'shared'
