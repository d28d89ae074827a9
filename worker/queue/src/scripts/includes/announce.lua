--[[
  Announces a verdict to the gateway that added the job, and to the gateway where its client is
  now. The message is the job id, a space, and the sealed verdict. A present key of another type is
  ignored.
]]
local function announce(channels, replyTo, presentKey, id, sealed)
  local message = id .. ' ' .. sealed
  redis.call('PUBLISH', channels .. replyTo, message)
  local present = redis.pcall('GET', presentKey)
  if type(present) == 'string' and present ~= replyTo then redis.call('PUBLISH', channels .. present, message) end
end
