--[[
  Moves the first ticketed jobs to the end of the open ones, as BullMQ does when a priority
  changes. Ids without a job are removed, and count. BullMQ's changePriority needs the ids first,
  and a command for each. Upstream: a number of jobs instead of an id.
  Input:
    KEYS[1] ticketed jobs
    KEYS[2] open jobs
    ARGV[1] prefix of job keys
    ARGV[2] number of jobs
  Output: nothing
]]
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[2] - 1)) do
  redis.call('ZREM', KEYS[1], id)
  if redis.call('EXISTS', ARGV[1] .. id) == 1 then
    redis.call('HSET', ARGV[1] .. id, 'priority', 0)
    redis.call('LPUSH', KEYS[2], id)
  end
end
