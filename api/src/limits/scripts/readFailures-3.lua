--[[
  Reads what delays the logins to an account.
  Input:
    KEYS[1] failures of the account
    KEYS[2] pending attempts of the account
    KEYS[3] failures of the account's devices
    ARGV[1] failures that cause no delay
    ARGV[2] life of a pending attempt of the account in milliseconds
  Output: the failures of unknown devices; milliseconds until the next attempt is allowed; known devices that failed
]]
--- @include "heldBack"
local failures, delayedUntil = heldBack(KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2]))
return {failures, math.max(0, delayedUntil - now), redis.call('HLEN', KEYS[3])}
