/** Counters in Redis, shared by all gateways, in fixed windows that begin with their first request. */
import { hash } from 'node:crypto'
import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import type { Keyring, PasswordClient, RedisConnection } from '@spillway/queue/client'
import { defineScript } from '@spillway/queue/redis/script'
import { normalizeEmail } from '../schemas/credentials.js'

/** Redis, as counters need it. */
export interface CountingRedis {
  connection: RedisConnection
  /** Called when a count fails. The request is admitted, and the failure is logged. */
  countFailed(error: unknown): void
}

/** A lost connection is logged elsewhere. */
export function toCountingRedis(passwords: PasswordClient, log: Logger): CountingRedis {
  const failed = new ThrottledWarning(log, 'requests could not be counted')
  return {
    connection: passwords.connection,
    countFailed(error) {
      if (passwords.isReady()) failed.warn(error)
    },
  }
}

const countRequest = defineScript<[count: number, leftMs: number]>(
  'countRequest-1',
  new URL('./scripts/', import.meta.url),
)

export interface Count {
  /** Requests in this window, including this one. */
  count: number
  /** Seconds until the window ends, rounded up. */
  resetS: number
}

/** Counts a request under a key. Rejects when Redis does not count it. */
export async function countIn(windowMs: number, key: string, redis: CountingRedis): Promise<Count> {
  const [count, leftMs] = await counted(redis, countRequest(redis.connection, [key], windowMs))
  return { count, resetS: Math.ceil(leftMs / 1_000) }
}

/** The answer of a command that counts. A failure is reported and rejects. */
export async function counted<Answer>(redis: CountingRedis, command: Promise<Answer>): Promise<Answer> {
  try {
    return await command
  } catch (error) {
    redis.countFailed(error)
    throw error
  }
}

const NAME_BYTES = 16

/** The digest of a normalized address. It is no secret: addresses can be guessed. */
export function accountOfEmail(email: string): string {
  return accountDigest(normalizeEmail(email))
}

/** The digest of a text that is no address, such as a user's id. */
export function accountDigest(text: string): string {
  return hash('sha256', text, 'buffer').subarray(0, NAME_BYTES).toString('base64url')
}

/**
 * The name of an account in Redis. It is keyed, so that a reader cannot try addresses. It changes
 * with the first seal key; counts then start at 0.
 */
export function accountNameOf(account: string, keyring: Keyring): string {
  const [name = ''] = accountNamesOf(account, keyring)
  return name
}

/** The names by all seal keys, the current key first. */
export function accountNamesOf(account: string, keyring: Keyring): string[] {
  const macs = keyring.macs({ purpose: 'account', id: account })
  return macs.map((mac) => mac.subarray(0, NAME_BYTES).toString('base64url'))
}
