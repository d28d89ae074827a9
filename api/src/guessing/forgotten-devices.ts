/**
 * When the devices of an account were forgotten: tokens that were issued until then are as good as none. Every Redis is told, because any of
 * them may be asked when another is lost. A Redis that does not take it at once is told again by this process.
 */

import { within } from '@spillway/client/within'
import type { ClientContext, Result } from 'ioredis'
import { LUA_COUNTS } from '../limits/lua-counts.js'
import type { CountingRedis } from '../limits/shared-counts.js'
import { CLOCK_TOLERANCE_S } from './device-token.js'

/** How long a request waits for each Redis, in milliseconds. */
const ANSWER_MS = 1_000
const RETRY_INTERVAL_MS = 500
/** Accounts that one Redis is still to be told of. Beyond that the oldest are dropped, so that an outage takes no more memory. */
const UNTOLD_MAX = 10_000

/**
 * Lua: notes when the devices were forgotten, unless a later time is there.
 * KEYS: of the account. ARGV: the time and the life of the key, in milliseconds.
 */
const FORGET = `${LUA_COUNTS}
if count_at(KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1`

export interface ForgottenDevices {
  /** Forgets the devices of an account, by one of its names in Redis: each is of the tokens that its key signed. Resolves once every Redis was told or has failed; never rejects. */
  forget(account: string): Promise<void>
  close(): void
}

/** Where the time is: epoch milliseconds. */
export function forgottenKey(queuePrefix: string, account: string): string {
  return `${queuePrefix}:devices-since:${account}`
}

export function createForgottenDevices(
  redis: readonly CountingRedis[],
  { queuePrefix, deviceTtlS, log }: { queuePrefix: string; deviceTtlS: number; log: ForgettingLog },
): ForgottenDevices {
  const lifeMs = (deviceTtlS + CLOCK_TOLERANCE_S) * 1_000
  const all = redis.map((one) => {
    one.connection.defineCommand('forgetDevices', { numberOfKeys: 1, lua: FORGET })
    /** Accounts with the times that are still to be written. */
    return { ...one, untold: new Map<string, number>(), isRetrying: false }
  })
  type Told = (typeof all)[number]

  /** Returns whether it was written. Never rejects. */
  async function tell(one: Told, account: string, atMs: number): Promise<boolean> {
    const { address, connection, isUsable, untold } = one
    try {
      if (!isUsable()) throw new Error('Redis does not answer at present')
      const written = connection.forgetDevices(forgottenKey(queuePrefix, account), atMs, lifeMs)
      if ((await within(ANSWER_MS, written)) === undefined) throw new Error('Redis did not answer in time')
      if ((untold.get(account) ?? 0) <= atMs) untold.delete(account)
      return true
    } catch (error) {
      if (untold.size === 0)
        log.warn({ err: error, redis: address }, 'devices could not be forgotten, and are known until a retry succeeds')
      untold.set(account, Math.max(atMs, untold.get(account) ?? 0))
      const [oldest] = untold.keys()
      if (untold.size > UNTOLD_MAX && oldest !== undefined) untold.delete(oldest)
      return false
    }
  }

  /** Tells one after the other, until one fails again. */
  async function retry(one: Told): Promise<void> {
    if (one.isRetrying || one.untold.size === 0) return
    one.isRetrying = true
    for (const [account, atMs] of [...one.untold]) if (!(await tell(one, account, atMs))) break
    one.isRetrying = false
    if (one.untold.size === 0) log.info({ redis: one.address }, 'devices that could not be forgotten are forgotten now')
  }

  const timer = setInterval(() => {
    for (const one of all) void retry(one)
  }, RETRY_INTERVAL_MS)
  timer.unref()

  return {
    async forget(account) {
      const atMs = Date.now()
      await Promise.all(all.map((one) => tell(one, account, atMs)))
    },
    close: () => clearInterval(timer),
  }
}

interface ForgettingLog {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext> {
    forgetDevices(key: string, atMs: number, lifeMs: number): Result<number, Context>
  }
}
