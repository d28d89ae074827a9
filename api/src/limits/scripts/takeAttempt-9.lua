--[[
  Counts an attempt at a password for its address, then for its account, or for one of them. Redis runs a script as a
  whole, so concurrent attempts cannot pass a bound together. An admitted attempt is pending: until it is ended or
  lapses, it counts as a failure. If its address refuses it, it does not count for its account.
  Input:
    KEYS[1] failures of the address
    KEYS[2] pending attempts of the address
    KEYS[3] attempts of the address that wait behind
    KEYS[4] requests of the account this minute
    KEYS[5] failures of the account
    KEYS[6] pending attempts of the account
    KEYS[7] requests of the device this minute
    KEYS[8] failures of the account's devices
    KEYS[9] pending attempts of the device
    ARGV[1] attempt
    ARGV[2] for its address: attempt, redemption, or request (which is no attempt); empty: not counted for it
    ARGV[3] failures that the address may have
    ARGV[4] milliseconds that a failure counts for the address
    ARGV[5] life of a pending attempt of the address in milliseconds
    ARGV[6] life of an attempt behind in milliseconds
    ARGV[7] attempts that may wait behind
    ARGV[8] for its account: 1; empty: not counted for it
    ARGV[9] device; empty for an unknown one
    ARGV[10] requests a minute of the account, and of a known device; 0 for no bound
    ARGV[11] failures of one device before it counts as unknown
    ARGV[12] failures of unknown devices together that cause no delay; 0 for no delay at all
    ARGV[13] life of a pending attempt of the account in milliseconds
  Output: for the address and for the account, each false if it was not counted
    address: counted, refused, behind or crowded; how many count; milliseconds until the failures are fewer than the
    limit, or for an admitted request until the first of them lapses
    account: known, unknown, delayed or too_many; the failures before it, of the known device or of all unknown ones;
    milliseconds until the next attempt may be let in; the requests this minute
]]
--- @include "lapsing"
--- @include "countRequestIn"
--- @include "heldBack"
local attempt = ARGV[1]

local function forAddress(kind, most, window, life, behindLife, behindMost)
  local failed, pending, behind = KEYS[1], KEYS[2], KEYS[3]
  local failures = counted(failed, window)
  local function left(index)
    local lapses = redis.call('ZRANGEBYSCORE', failed, text(now), text(now + window), 'WITHSCORES', 'LIMIT', index, 1)[2]
    return lapses and math.max(1, tonumber(lapses) - now) or window
  end
  local all = failures + counted(pending, life)
  local lapses = tonumber(redis.call('ZSCORE', pending, attempt) or 0)
  local isPending = lapses >= now and lapses <= now + life
  -- The attempt has failed: its ticket is used.
  if kind == 'redemption' and redis.call('ZSCORE', failed, attempt) then return {'counted', all, left(0)} end
  if not isPending and failures >= most then return {'refused', failures, left(failures - most)} end
  if kind == 'request' then
    begin(failed, attempt, window)
    return {'counted', all + 1, left(0)}
  end
  if isPending or all < most then
    begin(pending, attempt, life)
    redis.call('ZREM', behind, attempt)
    return {'counted', isPending and all or all + 1, left(0)}
  end
  if kind == 'redemption' then return {'behind', all, left(0)} end
  if counted(behind, behindLife) >= behindMost then return {'crowded', all, left(0)} end
  begin(behind, attempt, behindLife)
  return {'behind', all, left(0)}
end

local MINUTE = 60000
-- Further devices count as unknown. Each of these has logged in with the right password.
local FAILED_DEVICES = 100

local function forAccount(device, perMinute, mostOfDevice, undelayed, life)
  if device ~= '' then
    local failed = tonumber(redis.call('HGET', KEYS[8], device) or 0)
    local failures = failed + pendingAt(KEYS[9], life)
    local isCounted = failed > 0 or redis.call('HLEN', KEYS[8]) < FAILED_DEVICES
    if failures < mostOfDevice and isCounted then
      local requests, left = countRequestIn(KEYS[7], MINUTE)
      if perMinute > 0 and requests > perMinute then return {'too_many', failures, left, requests} end
      begin(KEYS[9], attempt, life)
      return {'known', failures, 0, requests}
    end
  end
  local failures, delayedUntil = heldBack(KEYS[5], KEYS[6], undelayed, life)
  local requests, left = countRequestIn(KEYS[4], MINUTE)
  if undelayed > 0 and delayedUntil > now then return {'delayed', failures, delayedUntil - now, requests} end
  if perMinute > 0 and requests > perMinute then return {'too_many', failures, left, requests} end
  if undelayed > 0 then begin(KEYS[6], attempt, life) end
  return {'unknown', failures, 0, requests}
end

local function numbers(first, last)
  local found = {}
  for n = first, last do found[#found + 1] = tonumber(ARGV[n]) end
  return unpack(found)
end

local ofAddress = ARGV[2] ~= '' and forAddress(ARGV[2], numbers(3, 7))
local isRefused = ofAddress and (ofAddress[1] == 'refused' or ofAddress[1] == 'crowded')
return {ofAddress, ARGV[8] ~= '' and not isRefused and forAccount(ARGV[9], numbers(10, 13))}
