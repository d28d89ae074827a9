/**
 * Rate limits as hooks of requests: credentials per account, refreshes per address and session,
 * redemptions per address, mails per network. guessing/attempts.ts limits credentials per address.
 * Made-up tickets and refresh tokens do not count: they are refused from memory, and paced.
 *
 * A request that the limit of the address refuses does not count for its account or session: one
 * client could lock out any number of accounts. The count of an account is sent only with a
 * refusal: it would reveal when an account is used.
 */
import type { Keyring } from '@spillway/queue/queue-client'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../config.js'
import { networkOf } from './client-network.js'
import { accountDigest, accountNameOf, accountOfEmail, type Count, type CountingRedis, countIn } from './counts.js'
import { ApiError, type RefusalReason } from './errors.js'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/** Names over their limit that are remembered. Beyond it, all are counted in Redis again. */
const MOST_REMEMBERED = 10_000

interface LimitsOptions {
  config: GatewayConfig
  redis: readonly CountingRedis[]
  /** A name for the session of a refresh token that tells a reader of Redis nothing. */
  sessionNameOf(request: FastifyRequest): string
  keyring: Keyring
}

export const limitsPlugin = fp(
  async (app: FastifyInstance, { config, redis, keyring, sessionNameOf }: LimitsOptions) => {
    const limit = (options: Limit) => new RateLimit(redis, config.QUEUE_PREFIX, options).count
    const limitPerNetwork = (kind: string, max: number) =>
      limit({ max, reason: 'address_limit', nameOf: ({ ip }) => `${kind}:${networkOf(ip)}`, headers: 'always' })
    const limitAccount = limit({
      max: config.LIMIT_PER_ACCOUNT,
      reason: 'account_limit',
      nameOf: (request) => `account:${accountNameOf(accountOf(request), keyring)}`,
      headers: 'when refused',
    })
    const limitSession = limit({
      max: config.LIMIT_REFRESH_PER_SESSION,
      reason: 'session_limit',
      nameOf: (request) => `session:${sessionNameOf(request)}`,
      headers: 'when refused',
    })
    const limitMailNetwork = limit({
      max: config.LIMIT_MAIL_PER_NETWORK,
      windowMs: HOUR_MS,
      reason: 'mail_limit',
      nameOf: ({ ip }) => `mail-network:${networkOf(ip)}`,
      headers: 'when refused',
    })
    app.decorate('limitAccount', limitAccount)
    app.decorate('limitRefreshNetwork', limitPerNetwork('refresh', config.LIMIT_REFRESH_PER_ADDRESS))
    app.decorate('limitSession', limitSession)
    app.decorate('limitRedeemNetwork', limitPerNetwork('redeem', config.LIMIT_REDEEM_PER_ADDRESS))
    app.decorate('limitMailNetwork', limitMailNetwork)
  },
  { name: 'limits' },
)

/** Of the access token, if there is one: the body may hold any address. Else of the body. */
function accountOf({ body, user }: FastifyRequest): string {
  const email = typeof body === 'object' && body !== null && 'email' in body ? body.email : undefined
  return typeof email === 'string' && !user ? accountOfEmail(email) : accountDigest(user.sub)
}

interface Limit {
  /** Requests in a window; 0 is no limit. */
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
    // The rest of a window is rounded up to a second: the memory must not refuse beyond it.
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
 * A name over its limit is refused from memory until its window ends. A failed count allows its
 * request, and is logged (toCountingRedis): while Redis is unreachable nothing is hashed.
 */
export class RateLimit {
  readonly #redis: readonly CountingRedis[]
  readonly #queuePrefix: string
  readonly #limit: Limit
  readonly #refusals = new Refusals()

  constructor(redis: readonly CountingRedis[], queuePrefix: string, limit: Limit) {
    this.#redis = redis
    this.#queuePrefix = queuePrefix
    this.#limit = limit
  }

  /** Hook that counts a request. Throws `too_many_requests`. */
  readonly count: LimitRequest = async (request, reply) => {
    const { max, windowMs = MINUTE_MS, reason, nameOf, headers } = this.#limit
    if (max === 0) return
    const name = nameOf(request)
    const resetS = this.#refusals.remembered(name)
    const counted =
      resetS === undefined
        ? await countIn(windowMs, `${this.#queuePrefix}:limit:${name}`, this.#redis).catch(() => undefined)
        : { count: max + 1, resetS }
    if (counted === undefined) return
    const refused = counted.count > max
    if (refused || headers === 'always') sendLimitHeaders(reply, max, counted)
    if (!refused) return
    if (resetS === undefined) this.#refusals.remember(name, counted.resetS)
    throw new ApiError('too_many_requests', { reason, retryAfterS: Math.max(1, counted.resetS) })
  }
}

/** Header fields of the IETF draft draft-ietf-httpapi-ratelimit-headers. */
export function sendLimitHeaders(reply: FastifyReply, max: number, { count, resetS }: Count): void {
  reply.headers({ 'ratelimit-limit': max, 'ratelimit-remaining': Math.max(0, max - count), 'ratelimit-reset': resetS })
}

declare module 'fastify' {
  interface FastifyInstance {
    /** `preHandler` hook that counts a request for its account, after authentication. */
    limitAccount: LimitRequest
    /** `preHandler` hooks for requests that show a refresh token of ours. */
    limitRefreshNetwork: LimitRequest
    limitSession: LimitRequest
    limitRedeemNetwork: LimitRequest
    /** `onRequest` hook for requests that send mail. */
    limitMailNetwork: LimitRequest
  }
}
