--[[
  Whether BullMQ has marked a job as failed for good. A retried job loses these fields.
]]
local function isFailed(job)
  return redis.call('HEXISTS', job, 'failedReason') + redis.call('HEXISTS', job, 'finishedOn') == 2
end
