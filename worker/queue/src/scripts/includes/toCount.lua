--[[
  A stored number. 0 for any text that is not a whole number above 0, or has more digits than Lua
  keeps.
]]
local function toCount(text)
  return type(text) == 'string' and #text <= 15 and string.find(text, '^[1-9]%d*$') and tonumber(text) or 0
end
