/**
 * Counts of attempts in Redis, shared by all gateways. An attempt counts as failed from the moment that it is let in, until it succeeds or
 * turns out to cost no hash: of a hundred at once no more get in than of a hundred in turn.
 */
import type { ClientContext, Result } from 'ioredis'
import { atHome, type CountingRedis } from '../limits/shared-counts.js'
import type { KnownDevice } from './device-token.js'
import type { Solved } from './proof-of-work.js'

const WINDOW_MS = 60_000
const DELAY_MAX_MS = 3_600_000
/** Of the failures that are allowed, this share is without delay, for people who try what the password may have been. */
const UNDELAYED_SHARE = 0.1
/**
 * How long one, two, three and more failures are remembered, in milliseconds. Anyone can fail on any address, so that a single failure must
 * not stay in Redis for long; and each took a hash.
 */
const HOUR_MS = 3_600_000
const MEMORY_MS = [6 * HOUR_MS, 24 * HOUR_MS, 96 * HOUR_MS, 720 * HOUR_MS]
/** A used challenge is remembered for so long after its expiry, in milliseconds: clocks of gateways differ. */
const CLOCK_TOLERANCE_MS = 180_000

/**
 * Lua: lets an attempt in, or not.
 * KEYS: the requests of the account this minute, its failures, the requests of the device this minute, its failures, the challenge, when the
 * account last changed its password.
 * ARGV: when the token of a device was issued, 0 without one; the life of a solved challenge in milliseconds, 0 without one; the bounds of requests a minute, of
 * failures of unknown devices together, of failures of one device, 0 for none; undelayed failures; the memory of a device's failures; the
 * memory of an account's.
 * Returns what becomes of it, the failures before it, a time in milliseconds, and the requests this minute.
 */
const LET_IN = `
local issued_at, challenge, per_minute = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local most, most_of_device, undelayed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local function count(key)
  local requests = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  if left < 0 then
    left = ${WINDOW_MS}
    redis.call('PEXPIRE', key, left)
  end
  return requests, left
end
if issued_at > 0 and issued_at >= (tonumber(redis.call('GET', KEYS[6])) or 0) then
  local failures = tonumber(redis.call('GET', KEYS[4])) or 0
  if failures < most_of_device then
    local requests, left = count(KEYS[3])
    if per_minute > 0 and requests > per_minute then return {'device_too_many', failures, left, requests} end
    redis.call('SET', KEYS[4], failures + 1, 'PX', ARGV[7])
    return {'known', failures, 0, requests}
  end
end
local failures, delayed_until = unpack(redis.call('HMGET', KEYS[2], 'failures', 'delayedUntil'))
failures, delayed_until = tonumber(failures) or 0, tonumber(delayed_until) or 0
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local solved = challenge > 0 and redis.call('SET', KEYS[5], 1, 'NX', 'PX', challenge)
local requests = 0
if not solved then
  local left
  requests, left = count(KEYS[1])
  if most > 0 and failures >= most then return {'challenge', failures, 0, requests} end
  if most > 0 and delayed_until > now then return {'delayed', failures, delayed_until - now, requests} end
  if per_minute > 0 and requests > per_minute then return {'too_many', failures, left, requests} end
end
if most > 0 then
  local failed = failures + 1
  local delay = 0
  if failed >= undelayed then delay = math.min(${DELAY_MAX_MS}, 1000 * 2 ^ math.min(30, failed - undelayed)) end
  redis.call('HSET', KEYS[2], 'failures', failed, 'delayedUntil', string.format('%.0f', now + delay))
  redis.call('PEXPIRE', KEYS[2], ARGV[math.min(#ARGV, 7 + failed)])
end
return {solved and 'solved' or 'unknown', failures, 0, requests}`

/**
 * Lua: takes back an attempt that cost no hash.
 * KEYS: the failures of the account, those of the device, the challenge. ARGV: whether it was counted for the device, and whether it solved
 * a challenge. That one may be solved again, and spares no later attempt the delay that it spared this one.
 */
const TAKE_BACK = `
if ARGV[1] == '1' then
  if (tonumber(redis.call('GET', KEYS[2])) or 0) > 0 then redis.call('DECR', KEYS[2]) end
else
  redis.call('DEL', KEYS[3])
  if (tonumber(redis.call('HGET', KEYS[1], 'failures')) or 0) > 0 then
    redis.call('HINCRBY', KEYS[1], 'failures', -1)
    if ARGV[2] == '0' then redis.call('HSET', KEYS[1], 'delayedUntil', 0) end
  end
end`

export type AttemptOutcome = 'known' | 'unknown' | 'solved' | 'too_many' | 'device_too_many' | 'delayed' | 'challenge'

/** Who attempts: an account, and the device that showed a token of it. Names as Redis may hold them. */
export interface Attempter {
  account: string
  device: string | null
}

export interface LetIn {
  outcome: AttemptOutcome
  /** Of the account's unknown devices together, or of a known device, before this one. */
  failures: number
  /** Until it may be tried again, in milliseconds. */
  waitMs: number
  /** This minute, this one included. */
  requests: number
}

export interface AttemptBounds {
  perMinute: number
  /** Consecutive failures of unknown devices together, and of one known device. */
  perAccount: number
  perDevice: number
  deviceTtlS: number
}

export function createAttempts(redis: readonly CountingRedis[], queuePrefix: string, bounds: AttemptBounds) {
  for (const { connection } of redis) {
    connection.defineCommand('letAttemptIn', { numberOfKeys: 6, lua: LET_IN })
    connection.defineCommand('takeAttemptBack', { numberOfKeys: 3, lua: TAKE_BACK })
  }
  const key = (kind: string, name: string | null) => `${queuePrefix}:${kind}:${name ?? '-'}`
  /** Where an account is counted: together with the requests that the limit of its account counts. */
  const atHomeOf = <Answer>(account: string, ask: (connection: CountingRedis['connection']) => Promise<Answer>) =>
    atHome(key('limit:account', account), redis, ({ connection }) => ask(connection))
  const failuresOf = ({ account, device }: Attempter) =>
    [key('guesses', account), key('guesses:device', device)] as const

  return {
    /** Counts an attempt, and says whether it is let in. */
    async letIn(account: string, device: KnownDevice | null, solved?: Solved): Promise<LetIn> {
      const attempter = { account, device: device?.id ?? null }
      const [ofAccount, ofDevice] = failuresOf(attempter)
      const [outcome, failures, waitMs, requests] = await atHomeOf(account, (connection) =>
        connection.letAttemptIn(
          key('limit:account', account),
          ofAccount,
          key('limit:device', attempter.device),
          ofDevice,
          key('challenge', solved?.id ?? null),
          key('devices-since', account),
          device?.issuedAtS ?? 0,
          solved === undefined ? 0 : Math.ceil(solved.leftMs) + CLOCK_TOLERANCE_MS,
          bounds.perMinute,
          bounds.perAccount,
          bounds.perDevice,
          Math.ceil(bounds.perAccount * UNDELAYED_SHARE),
          bounds.deviceTtlS * 1_000,
          ...MEMORY_MS,
        ),
      )
      return { outcome, failures, waitMs, requests }
    },

    /** A right password: what failed before does not count any more (NIST SP 800-63B-4, 3.2.2). */
    async succeeded(attempter: Attempter): Promise<void> {
      const [ofAccount, ofDevice] = failuresOf(attempter)
      const counted = attempter.device === null ? ofAccount : ofDevice
      await atHomeOf(attempter.account, (connection) => connection.del(counted))
    },

    /** Devices that are known now are unknown from now on. */
    async forgetDevices(account: string): Promise<void> {
      const nowS = Math.floor(Date.now() / 1_000)
      // In every Redis: any of them may be asked when another is lost.
      const write = ({ connection }: CountingRedis) =>
        connection.set(key('devices-since', account), nowS, 'EX', bounds.deviceTtlS)
      await Promise.all(redis.map(write))
    },

    /** An attempt that was let in and never became a job. */
    async takeBack(attempter: Attempter, challengeId?: string): Promise<void> {
      const [ofAccount, ofDevice] = failuresOf(attempter)
      const ofChallenge = key('challenge', challengeId ?? null)
      const isKnown = attempter.device === null ? 0 : 1
      await atHomeOf(attempter.account, (connection) =>
        connection.takeAttemptBack(ofAccount, ofDevice, ofChallenge, isKnown, challengeId === undefined ? 0 : 1),
      )
    },
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    letAttemptIn(
      ...keysAndBounds: [...keys: [string, string, string, string, string, string], ...bounds: number[]]
    ): Result<[AttemptOutcome, number, number, number], Context>
    takeAttemptBack(
      ...keysAndCase: [account: string, device: string, challenge: string, isKnown: number, isSolved: number]
    ): Result<unknown, Context>
  }
}
