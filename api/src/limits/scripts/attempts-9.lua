--[[
  Counts attempts at passwords for their address and their account. Redis runs a script as a whole, so concurrent
  attempts cannot pass a bound together. An admitted attempt is pending: until it is ended or lapses, it counts as a
  failure.
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
    ARGV[1] take, finish or read; the function of this name takes the other arguments and describes them
]]

--[[
  Sorted sets of members that count for a time, scored by the time at which they lapse. `counted` counts the members
  that lapse within the next `life` milliseconds, and ignores later ones. `begin` adds a member, or renews its life.
  Neither deletes before it writes.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
local function counted(key, life)
  return redis.call('ZCOUNT', key, text(now), text(now + life))
end
local function begin(key, member, life)
  redis.call('ZADD', key, text(now + life), member)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(now))
  redis.call('PEXPIRE', key, life)
end

-- Counts a request in a window, as countRequest-1.lua does.
local function countRequestIn(key, window)
  local requests = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  if left < 0 or left > window then
    left = window
    redis.call('PEXPIRE', key, left)
  end
  return requests, left
end

local LONGEST_DELAY = 3600000

-- Counts the pending attempts, and returns when the last of them began. Each lapses at its own time.
local function pendingAt(key, life)
  local pending = counted(key, life)
  local last = redis.call('ZREVRANGEBYSCORE', key, text(now + life), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  return pending, last and math.min(now, tonumber(last) - life) or 0
end

-- What delays the unknown devices of an account: their failures, including pending attempts, and the time until which
-- the next attempt is delayed.
local function heldBack(failed, pending, undelayed, life)
  local ended, failedAt = unpack(redis.call('HMGET', failed, 'failures', 'failedAt'))
  local underway, beganAt = pendingAt(pending, life)
  local failures = tonumber(ended or 0) + underway
  if failures == 0 or failures < undelayed then return failures, 0 end
  local delay = math.min(LONGEST_DELAY, 1000 * 2 ^ math.min(30, failures - undelayed))
  return failures, math.max(math.min(now, tonumber(failedAt or 0)), beganAt) + delay
end

local function forAddress(attempt, kind, most, window, life, behindLife, behindMost)
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

local function forAccount(attempt, device, perMinute, mostOfDevice, undelayed, life)
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

--[[
  Counts an attempt for its address, then for its account, or for one of them. If its address refuses it, it does not
  count for its account.
    kind: for its address: attempt, redemption, or request (which is no attempt); empty: not counted for it
    most: failures that the address may have
    window: milliseconds that a failure counts for the address
    life: life of a pending attempt of the address in milliseconds
    behindLife, behindMost: life of an attempt behind in milliseconds; attempts that may wait behind
    isOfAccount: for its account: 1; empty: not counted for it
    device: empty for an unknown one
    perMinute: requests a minute of the account, and of a known device; 0 for no bound
    mostOfDevice: failures of one device before it counts as unknown
    undelayed: failures of unknown devices together that cause no delay; 0 for no delay at all
    accountLife: life of a pending attempt of the account in milliseconds
  Output: for the address and for the account, each false if it was not counted
    address: counted, refused, behind or crowded; how many count; milliseconds until the failures are fewer than the
    limit, or for an admitted request until the first of them lapses
    account: known, unknown, delayed or too_many; the failures before it, of the known device or of all unknown ones;
    milliseconds until the next attempt may be let in; the requests this minute
]]
local function take(attempt, kind, most, window, life, behindLife, behindMost, isOfAccount, device, ...)
  local n = tonumber
  local ofAddress = kind ~= '' and forAddress(attempt, kind, n(most), n(window), n(life), n(behindLife), n(behindMost))
  local isRefused = ofAddress and (ofAddress[1] == 'refused' or ofAddress[1] == 'crowded')
  if isOfAccount == '' or isRefused then return {ofAddress, false} end
  local perMinute, mostOfDevice, undelayed, accountLife = ...
  return {ofAddress, forAccount(attempt, device, n(perMinute), n(mostOfDevice), n(undelayed), n(accountLife))}
end

--[[
  Ends an attempt for its address, for its account, or for both. A failure counts even if its attempt has lapsed. An
  attempt that ends with nothing is not counted. ZREM comes first, because a full Redis server refuses no command
  after the first write of a script.
    window: milliseconds that a failure counts for the address; empty: not ended for it
    outcome: failed, succeeded or nothing
    isOfAccount: for its account: 1; empty: not ended for it
    device: empty for an unknown one
    deviceMemory: milliseconds that failures of a device are remembered
    ...: milliseconds that one, two and more failures of an account are remembered
  Output: 1
]]
local function finish(attempt, window, outcome, isOfAccount, device, deviceMemory, ...)
  if window ~= '' then
    redis.call('ZREM', KEYS[2], attempt)
    redis.call('ZREM', KEYS[3], attempt)
    if outcome == 'failed' then begin(KEYS[1], attempt, tonumber(window)) end
  end
  if isOfAccount == '' then return 1 end
  local isKnown = device ~= ''
  local failures, pending = isKnown and KEYS[8] or KEYS[5], isKnown and KEYS[9] or KEYS[6]
  redis.call('ZREM', pending, attempt)
  if outcome == 'nothing' then return 1 end
  if isKnown then
    if outcome == 'succeeded' then
      redis.call('HDEL', failures, device)
      return 1
    end
    redis.call('HSET', failures, device, tonumber(redis.call('HGET', failures, device) or 0) + 1)
    redis.call('PEXPIRE', failures, deviceMemory)
    return 1
  end
  if outcome == 'succeeded' then
    redis.call('DEL', failures)
    return 1
  end
  local failed = tonumber(redis.call('HGET', failures, 'failures') or 0) + 1
  redis.call('HSET', failures, 'failures', failed, 'failedAt', text(now))
  local memory = {...}
  redis.call('PEXPIRE', failures, memory[math.min(#memory, failed)])
  return 1
end

--[[
  Reads what delays the logins to an account.
    undelayed: failures that cause no delay
    life: life of a pending attempt of the account in milliseconds
  Output: the failures of unknown devices; milliseconds until the next attempt is allowed; known devices that failed
]]
local function read(undelayed, life)
  local failures, delayedUntil = heldBack(KEYS[5], KEYS[6], tonumber(undelayed), tonumber(life))
  return {failures, math.max(0, delayedUntil - now), redis.call('HLEN', KEYS[8])}
end

local actions = {take = take, finish = finish, read = read}
return actions[table.remove(ARGV, 1)](unpack(ARGV))
