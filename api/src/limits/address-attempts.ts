/**
 * Attempts at passwords, counted for their address, which any number of people may share. An attempt counts when it is made, and no longer
 * once it succeeded or revealed nothing. Only failures use the limit up, each for a minute.
 *
 * Until its result is known, an attempt counts as a failure: no more of a thousand wrong ones at once are hashed than of a thousand in
 * turn. Attempts beyond that go behind: each gets a ticket, whose job is hashed only once a redemption finds room (letIn), and while its
 * client is there. So everything that may be hashed within the minute is counted.
 */

import { toCount, toList } from '@spillway/queue/redis/unexpected-reply'
import { randomBytes } from '@spillway/queue/wire/seal'
import type { FastifyReply } from 'fastify'
import type { ClientContext, Result } from 'ioredis'
import { ApiError } from '../problems/errors.js'
import { storedNetworkOf } from './client-network.js'
import { createRefusals, sendLimitHeaders } from './limit.js'
import { type Count, LUA_LAPSING } from './request-counts.js'
import { atHome, type CountingRedis } from './shared-counts.js'

/** How long a failure counts. */
const WINDOW_MS = 60_000
/** Attempts that may wait behind, for each that the limit allows: with those that count, what the limit allows in a ticket's life. */
const BEHIND_FOR_EACH = 4
/** The Retry-After where all these wait. */
const BEHIND_RETRY_AFTER_S = 5
const ID_BYTES = 9

/**
 * Lua: counts an attempt, its redemption, or a request without an attempt. A function, for scripts that count elsewhere as well; after
 * LUA_LAPSING. KEYS: failures, pending attempts, those behind. ARGV: the attempt, or another id; `attempt`, `redemption` or `request`; the
 * limit, the window, the life of a pending attempt, the life and the number of those behind. Returns its outcome, how many count, and
 * milliseconds: until the failures are fewer than the limit, or for an admitted request until the first of them lapses.
 */
export const LUA_COUNT_FOR_ADDRESS = `
local function count_for_address(KEYS, ARGV)
local failed, pending, behind = unpack(KEYS)
local id, kind, most, window, life = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local failures = counted(failed, window)
local function left(index)
  local score = redis.call('ZRANGEBYSCORE', failed, text(now), text(now + window), 'WITHSCORES', 'LIMIT', index, 1)[2]
  return score and math.max(1, tonumber(score) - now) or window
end
local attempts = counted(pending, life)
local all = failures + attempts
local lapses = tonumber(redis.call('ZSCORE', pending, id) or 0)
local is_pending = lapses >= now and lapses <= now + life
-- It is answered: its ticket is used.
if kind == 'redemption' and redis.call('ZSCORE', failed, id) then return {'counted', all, left(0)} end
if not is_pending and failures >= most then return {'refused', failures, left(failures - most)} end
if kind == 'request' then
  begin(failed, id, window)
  return {'counted', all + 1, left(0)}
end
if is_pending or all < most then
  keep_only('zset', behind)
  begin(pending, id, life)
  redis.call('ZREM', behind, id)
  return {'counted', is_pending and all or all + 1, left(0)}
end
if kind == 'redemption' then return {'behind', all, left(0)} end
if counted(behind, tonumber(ARGV[6])) >= tonumber(ARGV[7]) then return {'crowded', all, left(0)} end
begin(behind, id, tonumber(ARGV[6]))
return {'behind', all, left(0)}
end`
const COUNT_ATTEMPT = `${LUA_LAPSING}${LUA_COUNT_FOR_ADDRESS}
return count_for_address(KEYS, ARGV)`

/**
 * Lua: ends an attempt, as a function. KEYS: as above. ARGV: the attempt, whether it failed (1 or 0), the window.
 * ZREM comes first because of a full Redis: what follows a write is not refused.
 */
export const LUA_END_FOR_ADDRESS = `
local function end_for_address(KEYS, ARGV)
keep_only('zset', KEYS[2])
keep_only('zset', KEYS[3])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if ARGV[2] == '0' then return 0 end
keep_only('zset', KEYS[1])
begin(KEYS[1], ARGV[1], tonumber(ARGV[3]))
return 1
end`
const END_ATTEMPT = `${LUA_LAPSING}${LUA_END_FOR_ADDRESS}
return end_for_address(KEYS, ARGV)`

/** An attempt as it is counted for its address. */
export interface AddressAttempt {
  id: string
  /** Where it came from: its ticket may be redeemed elsewhere. */
  network: string
}

export interface CountedAttempt extends AddressAttempt {
  /** Whether it goes behind: a ticket at once, and no hash until {@link AddressAttempts.letIn}. */
  isBehind: boolean
}

/** What a script works on. */
export interface ScriptInput {
  keys: [string, string, string]
  args: (string | number)[]
}

/** An attempt that is counted by a script which counts it elsewhere as well. */
export interface CountedTogether extends ScriptInput {
  id: string
  /** Takes the answer of count_for_address. Throws `too_many_requests`. */
  counted(answer: unknown): CountedAttempt
}

export interface AddressAttempts {
  /**
   * Whether one script can count an attempt here and for its account: where there is a limit, and one Redis server. With several, address and
   * account have their counts on servers of their own, as each of both comes with many of the other. Two commands everywhere would be
   * one way instead of two, and a command more for each login and each end of one.
   */
  isTogether: boolean
  /** Refuses an address from memory while it is known to be over its limit. Throws `too_many_requests`. */
  refuseRemembered(address: string, reply: FastifyReply): void
  /** An attempt for LUA_COUNT_FOR_ADDRESS. */
  beginTogether(address: string, reply: FastifyReply): CountedTogether
  /** The end of an attempt for LUA_END_FOR_ADDRESS. */
  endTogether(attempt: AddressAttempt, hasFailed: boolean): ScriptInput
  /** Counts an attempt. Throws `too_many_requests`. */
  begin(address: string, reply: FastifyReply): Promise<CountedAttempt>
  /** Counts a request that is not an attempt: for a minute, whatever its outcome. Throws `too_many_requests`. */
  count(address: string, reply: FastifyReply): Promise<void>
  /** Whether the job of a ticket may be hashed while its client is there. */
  letIn(attempt: AddressAttempt): Promise<boolean>
  /** Ends an attempt: only a failure still counts. Not awaited: a command that is lost leaves it to lapse. */
  end(attempt: AddressAttempt, hasFailed: boolean): void
}

export interface AddressAttemptsOptions {
  redis: readonly CountingRedis[]
  queuePrefix: string
  /** Failures a minute; 0 is no limit. */
  max: number
  /** The longest time that a client counts as present after it asked, in milliseconds. */
  presentMs: number
  ticketTtlMs: number
}

export function createAddressAttempts(options: AddressAttemptsOptions): AddressAttempts {
  const { redis, queuePrefix, max, ticketTtlMs } = options
  /** An attempt counts for a minute from its hash, which comes while its client is present. */
  const pendingMs = WINDOW_MS + options.presentMs
  const refusals = createRefusals()
  for (const { connection } of redis) {
    connection.defineCommand('countAddressAttempt', { numberOfKeys: 3, lua: COUNT_ATTEMPT })
    connection.defineCommand('endAddressAttempt', { numberOfKeys: 3, lua: END_ATTEMPT })
  }
  const keysOf = (network: string): [string, string, string] => {
    const key = `${queuePrefix}:limit:address:${network}`
    return [key, `${key}:pending`, `${key}:behind`]
  }
  const newId = () => randomBytes(ID_BYTES).toString('base64url')

  const bounds = [max, WINDOW_MS, pendingMs, ticketTtlMs, max * BEHIND_FOR_EACH] as const

  /** Undefined while Redis does not count: then nothing is hashed anyway. */
  async function ask({ id, network }: AddressAttempt, kind: 'attempt' | 'redemption' | 'request') {
    const keys = keysOf(network)
    try {
      const ask = ({ connection }: CountingRedis) => connection.countAddressAttempt(...keys, id, kind, ...bounds)
      return parse(await atHome(keys[0], redis, ask))
    } catch {
      return undefined
    }
  }

  /** Throws `too_many_requests` where that is what it says. */
  function judge(attempt: AddressAttempt, counted: CountOfAddress, reply: FastifyReply): CountedAttempt {
    const { outcome, resetS } = counted
    sendLimitHeaders(reply, max, counted)
    if (outcome === 'refused') refusals.remember(attempt.network, resetS)
    if (outcome === 'refused' || outcome === 'crowded')
      throw refusal(outcome === 'refused' ? resetS : BEHIND_RETRY_AFTER_S)
    return { ...attempt, isBehind: outcome === 'behind' }
  }

  /** Throws where the address is refused from memory. */
  function attemptOf(address: string, reply: FastifyReply): AddressAttempt {
    const attempt = { id: newId(), network: storedNetworkOf(address) }
    const resetS = max === 0 ? undefined : refusals.remembered(attempt.network)
    if (resetS === undefined) return attempt
    sendLimitHeaders(reply, max, { count: max, resetS })
    throw refusal(resetS)
  }

  async function countOf(address: string, reply: FastifyReply, kind: 'attempt' | 'request') {
    const attempt = attemptOf(address, reply)
    const counted = max === 0 ? undefined : await ask(attempt, kind)
    return counted === undefined ? { ...attempt, isBehind: false } : judge(attempt, counted, reply)
  }

  return {
    isTogether: max > 0 && redis.length === 1,
    refuseRemembered: (address, reply) => void attemptOf(address, reply),
    beginTogether(address, reply) {
      const attempt = attemptOf(address, reply)
      const { id, network } = attempt
      const args = [id, 'attempt', ...bounds]
      return { id, keys: keysOf(network), args, counted: (answer) => judge(attempt, parse(answer), reply) }
    },
    endTogether: ({ id, network }, hasFailed) => ({ keys: keysOf(network), args: [id, hasFailed ? 1 : 0, WINDOW_MS] }),
    begin: (address, reply) => countOf(address, reply, 'attempt'),
    async count(address, reply) {
      await countOf(address, reply, 'request')
    },
    async letIn(attempt) {
      if (max === 0) return true
      const counted = await ask(attempt, 'redemption')
      return counted === undefined || counted.outcome === 'counted'
    },
    end({ id, network }, hasFailed) {
      if (max === 0) return
      const keys = keysOf(network)
      atHome(keys[0], redis, ({ connection }) =>
        connection.endAddressAttempt(...keys, id, hasFailed ? 1 : 0, WINDOW_MS),
      ).catch(() => undefined)
    },
  }
}

interface CountOfAddress extends Count {
  outcome: string
}

/** Reads the answer of count_for_address. Throws where it is another. */
function parse(answer: unknown): CountOfAddress {
  const [outcome, count, leftMs] = toList(answer)
  return { outcome: String(outcome), count: toCount(count), resetS: Math.ceil(toCount(leftMs) / 1_000) }
}

function refusal(retryAfterS: number): ApiError {
  return new ApiError('too_many_requests', { reason: 'address_limit', retryAfterS: Math.max(1, retryAfterS) })
}

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    countAddressAttempt(
      ...keysAndBounds: [
        ...keys: [string, string, string],
        id: string,
        kind: string,
        ...bounds: readonly [number, number, number, number, number],
      ]
    ): Result<unknown, Context>
    endAddressAttempt(
      ...keysAndCase: [...keys: [string, string, string], id: string, hasFailed: number, windowMs: number]
    ): Result<unknown, Context>
  }
}
