--[[
  Gives a deferred job that was just added its number, and with a reply address marks its client as
  present. A Redis server that lost its data goes on from the last number that the gateway knows,
  instead of from 1.
  Input:
    KEYS[1] job
    KEYS[2] line
    KEYS[3] present key of the job
    ARGV[1] reply address or nothing
    ARGV[2] milliseconds that the client is present
    ARGV[3] last number that the gateway knows
  Output: the number
]]
--- @include "keepOnly"
--- @include "toCount"
local job, line, present = unpack(KEYS)
if ARGV[1] ~= '' then redis.call('SET', present, ARGV[1], 'PX', ARGV[2]) end
keepOnly('hash', line)
local number = math.max(toCount(redis.call('HGET', line, 'number')), toCount(ARGV[3])) + 1
redis.call('HSET', line, 'number', number)
if redis.call('EXISTS', job) == 1 then redis.call('HSET', job, 'number', number) end
return number
