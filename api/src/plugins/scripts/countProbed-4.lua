--[[
  Counts an account that failed for its network and for the network around it.
  Input:
    KEYS[1] accounts of the network
    KEYS[2] mark that it was noticed
    KEYS[3] accounts of the network around it
    KEYS[4] mark that it was noticed
    ARGV[1] length of the window in milliseconds
    ARGV[2] account
    ARGV[3] accounts of a network that is noticed
    ARGV[4] accounts of a wide network that is noticed
  Output: for each network 1 where it is noticed now, which is once in a window; else 0
]]
local function notice(accounts, mark, most)
  local added = redis.pcall('PFADD', accounts, ARGV[2])
  -- Whatever is no HyperLogLog is nobody's, and would stop every count.
  if type(added) == 'table' and (string.find(added.err, 'WRONGTYPE') or string.find(added.err, 'INVALIDOBJ')) then
    redis.call('DEL', accounts)
    added = redis.call('PFADD', accounts, ARGV[2])
  end
  if type(added) == 'table' then return added end
  if redis.call('PTTL', accounts) < 0 then redis.call('PEXPIRE', accounts, ARGV[1]) end
  if redis.call('PTTL', mark) == -1 then redis.call('PEXPIRE', mark, ARGV[1]) end
  local isMany = added == 1 and redis.call('PFCOUNT', accounts) >= tonumber(most)
  return isMany and redis.call('SET', mark, 1, 'NX', 'PX', ARGV[1]) and 1 or 0
end
local near = notice(KEYS[1], KEYS[2], ARGV[3])
if type(near) == 'table' then return near end
local wide = notice(KEYS[3], KEYS[4], ARGV[4])
if type(wide) == 'table' then return wide end
return {near, wide}
