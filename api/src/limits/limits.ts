/**
 * Counters in Redis, shared by all gateways, and rate limits as hooks of requests: credentials per
 * account, refreshes per address and session, redemptions per address, mails per network. guessing.ts
 * limits credentials per address. Made-up tickets and refresh tokens do not count: they are refused
 * from memory.
 *
 * A request that the limit of the address refuses does not count for its account or session.
 * Otherwise one client could lock out any number of accounts. The count of an account is sent only
 * with a refusal, because it would reveal when an account is used.
 */
import { hash } from 'node:crypto'
import { type Logger, ThrottledWarning } from '@spillway/common/throttled-warning'
import type { Keyring, PasswordClient, RedisConnection } from '@spillway/queue/client'
import { defineScript } from '@spillway/queue/redis/script'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { ApiError, type RefusalReason } from '../http/problems.js'
import { networkOf } from '../http/requests.js'
import { normalizeEmail } from '../schemas/credentials.js'
import type { Guessing } from './guessing.js'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/** How many names over their limit are remembered. Beyond that, all are counted in Redis again. */
const MOST_REMEMBERED = 10_000

interface LimitsOptions {
  config: GatewayConfig
  guessing: Guessing
  redis: CountingRedis
  /** A name for the session of a refresh token. It tells a reader of Redis nothing. */
  sessionNameOf(request: FastifyRequest): string
  keyring: Keyring
}

export type Limits = ReturnType<typeof createLimits>

/** Each hook counts a request, and throws `too_many_requests`. */
export function createLimits({ config, guessing, redis, keyring, sessionNameOf }: LimitsOptions) {
  const limit = (options: Limit) => rateLimit(redis, config.queuePrefix, options)
  const limitPerNetwork = (kind: string, max: number) =>
    limit({ max, reason: 'address_limit', nameOf: ({ ip }) => `${kind}:${networkOf(ip)}`, headers: 'always' })
  return {
    /** Requests that are no logins, by address. */
    network: ({ ip }: FastifyRequest, reply: FastifyReply) => guessing.countRequest(ip, reply),
    /** Requests by account, after authentication. */
    account: limit({
      max: config.limitPerAccount,
      reason: 'account_limit',
      nameOf: (request) => `account:${accountNameOf(accountOf(request), keyring)}`,
      headers: 'when refused',
    }),
    /** Requests with a refresh token of ours, by address and by session. */
    refreshNetwork: limitPerNetwork('refresh', config.limitRefreshPerAddress),
    session: limit({
      max: config.limitRefreshPerSession,
      reason: 'session_limit',
      nameOf: (request) => `session:${sessionNameOf(request)}`,
      headers: 'when refused',
    }),
    redeemNetwork: limitPerNetwork('redeem', config.limitRedeemPerAddress),
    /** Requests that send mail, by network. */
    mailNetwork: limit({
      max: config.limitMailPerNetwork,
      windowMs: HOUR_MS,
      reason: 'mail_limit',
      nameOf: ({ ip }) => `mail-network:${networkOf(ip)}`,
      headers: 'when refused',
    }),
  }
}

/** The account of the access token, if there is one, because the body may contain any address. */
function accountOf({ body, user }: FastifyRequest): string {
  const email = typeof body === 'object' && body !== null && 'email' in body ? body.email : undefined
  return typeof email === 'string' && !user ? accountOfEmail(email) : accountDigest(user.sub)
}

interface Limit {
  /** Requests in a window; 0 means no limit. */
  max: number
  /** The length of a window in milliseconds [a minute]. */
  windowMs?: number
  reason: RefusalReason
  /** The counter's name: requests with the same name are counted together. */
  nameOf(request: FastifyRequest): string
  /** Whether the RateLimit headers are sent with every answer, or only with refusals. */
  headers: 'always' | 'when refused'
}

export type LimitRequest = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** Names that are refused from memory until their limit lets them in again. */
export class Refusals {
  readonly #refusedUntil = new Map<string, number>()

  remember(name: string, resetS: number): void {
    if (this.#refusedUntil.size >= MOST_REMEMBERED) this.#refusedUntil.clear()
    // The rest of a window is rounded up to a second. The memory must not refuse for longer.
    this.#refusedUntil.set(name, performance.now() + (resetS - 1) * 1_000)
  }

  /** The seconds that are left; undefined for a name that is not refused. */
  remembered(name: string): number | undefined {
    const until = this.#refusedUntil.get(name)
    if (until === undefined) return undefined
    const leftMs = until - performance.now()
    if (leftMs > 0) return Math.ceil(leftMs / 1_000)
    this.#refusedUntil.delete(name)
    return undefined
  }
}

/**
 * The hook that counts a request. Throws `too_many_requests`. A name over its limit is refused from
 * memory until its window ends. If counting fails, the request is allowed and the failure is logged:
 * while Redis is unreachable nothing is hashed.
 */
export function rateLimit(redis: CountingRedis, queuePrefix: string, limit: Limit): LimitRequest {
  const { max, windowMs = MINUTE_MS, reason, nameOf, headers } = limit
  const refusals = new Refusals()
  return async (request, reply) => {
    if (max === 0) return
    const name = nameOf(request)
    const resetS = refusals.remembered(name)
    const counted =
      resetS === undefined
        ? await countIn(windowMs, `${queuePrefix}:limit:${name}`, redis).catch(() => undefined)
        : { count: max + 1, resetS }
    if (counted === undefined) return
    const refused = counted.count > max
    if (refused || headers === 'always') sendLimitHeaders(reply, max, counted)
    if (!refused) return
    if (resetS === undefined) refusals.remember(name, counted.resetS)
    throw new ApiError('too_many_requests', { reason, retryAfterS: Math.max(1, counted.resetS) })
  }
}

/** Sends the header fields of the IETF draft draft-ietf-httpapi-ratelimit-headers. */
export function sendLimitHeaders(reply: FastifyReply, max: number, { count, resetS }: Count): void {
  reply.headers({ 'ratelimit-limit': max, 'ratelimit-remaining': Math.max(0, max - count), 'ratelimit-reset': resetS })
}

// Counters, in fixed windows that begin with their first request.

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

/** The scripts of counters. */
export const scripts = new URL('./scripts/', import.meta.url)
const countRequest = defineScript<[count: number, leftMs: number]>('countRequest-1', scripts)

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
