--[[
  Shortens the presence of a client that went away. The mark of another gateway stays.
  Input:
    KEYS[1] present key of the job
    ARGV[1] reply address of the gateway
    ARGV[2] milliseconds that the client stays present
  Output: 1 where the presence was shortened, else 0
]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2], 'LT')
