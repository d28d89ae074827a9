--[[
  Counts a request in a fixed window, which begins with its first request.
  Input:
    KEYS[1] counter
    ARGV[1] length of the window in milliseconds
  Output: the count, and the milliseconds left
]]
--- @include "countRequestIn"
return {countRequestIn(KEYS[1], ARGV[1])}
