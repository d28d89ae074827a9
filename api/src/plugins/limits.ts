/**
 * Rate limits of the public API: requests with credentials per address and per account, refreshes per address and per session, redemptions
 * per address. The limit of requests of an address (guessing/) is checked before the body is read: refusals stay cheap, and invalid requests count. Made-up
 * tickets and refresh tokens do not: they are refused from memory, and paced. Logins count for their address only where they fail
 * (guessing/address-attempts.ts). With one Redis server they are counted when their body is valid, together with their account. An address known to
 * be over its limit is refused from memory before that. The other limit needs a valid body.
 *
 * A request that the limit of the address refuses does not count for its account or session: otherwise one client could lock out any
 * number of accounts at no cost. The count of an account is sent only when the account's limit refuses: otherwise it would reveal
 * whether and when an account is used.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { networkOf } from './client-network.js'
import { accountDigest, accountOfEmail, type Count, type CountingRedis, countIn } from './counts.js'
import { ApiError, type RefusalReason } from './errors.js'

const HOUR_MS = 3_600_000

export interface LimitsOptions {
  redis: readonly CountingRedis[]
  queuePrefix: string
  /** Requests a minute; 0 is no limit. */
  perAccount: number
  refreshPerAddress: number
  refreshPerSession: number
  redeemPerAddress: number
  /** Requests an hour that send mail. */
  mailPerNetwork: number
  /** A name for the session of the refresh token of a request that reveals nothing to a reader of Redis. */
  sessionNameOf(request: FastifyRequest): string
  /** The name of an account in Redis. */
  accountNameOf(account: string): string
}

export const limitsPlugin = fp(
  async (app: FastifyInstance, options: LimitsOptions) => {
    const limit = createLimits(options.redis, options.queuePrefix)
    const limitAddress = (kind: string, max: number) =>
      limit({ max, reason: 'address_limit', nameOf: ({ ip }) => `${kind}:${networkOf(ip)}`, headers: 'always' })

    app.decorate(
      'limitAccount',
      limit({
        max: options.perAccount,
        reason: 'account_limit',
        nameOf: (request) => `account:${options.accountNameOf(accountOf(request))}`,
        headers: 'when refused',
      }),
    )
    app.decorate('limitRefreshAddress', limitAddress('refresh', options.refreshPerAddress))
    app.decorate(
      'limitSession',
      limit({
        max: options.refreshPerSession,
        reason: 'session_limit',
        nameOf: (request) => `session:${options.sessionNameOf(request)}`,
        headers: 'when refused',
      }),
    )
    app.decorate('limitRedeemAddress', limitAddress('redeem', options.redeemPerAddress))
    app.decorate(
      'limitMailNetwork',
      limit({
        max: options.mailPerNetwork,
        windowMs: HOUR_MS,
        reason: 'mail_limit',
        nameOf: ({ ip }) => `mail-network:${networkOf(ip)}`,
        headers: 'when refused',
      }),
    )
  },
  { name: 'limits' },
)

/** Of the access token, if the route takes one: an address in its body would be anyone's. Else of the valid body. */
function accountOf({ body, user }: FastifyRequest): string {
  const email = typeof body === 'object' && body !== null && 'email' in body ? body.email : undefined
  return typeof email === 'string' && !user ? accountOfEmail(email) : accountDigest(user.sub)
}

declare module 'fastify' {
  interface FastifyInstance {
    /** `preHandler` hook that counts a request against the limit of its account, after validation and authentication. */
    limitAccount: LimitRequest
    /** `preHandler` hooks for requests that show a refresh token of ours. */
    limitRefreshAddress: LimitRequest
    limitSession: LimitRequest
    /** Counts redemptions of tickets. */
    limitRedeemAddress: LimitRequest
    /** `onRequest` hook for requests that send mail. */
    limitMailNetwork: LimitRequest
  }
}

const MINUTE_MS = 60_000

export interface Limit {
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

/** Names over their limit that are remembered. Beyond it all are forgotten, and counted in Redis again. */
const MOST_REMEMBERED = 10_000

/** Names that are refused from memory until their limit lets them in again. */
export class Refusals {
  /** In milliseconds of the monotonic clock. */
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
 * Returns how to make a limit. A name over its limit is refused from memory until its window ends. Limits allow everything while Redis is
 * unreachable: the queue is unreachable too, so nothing is hashed. A count that fails for another reason allows its request as well, and is
 * logged (toCountingRedis).
 */
export function createLimits(redis: readonly CountingRedis[], queuePrefix: string): (limit: Limit) => LimitRequest {
  return ({ max, windowMs = MINUTE_MS, reason, nameOf, headers }) => {
    const refusals = new Refusals()

    return async function limitRequest(request, reply) {
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
}

/** Header fields of the IETF draft draft-ietf-httpapi-ratelimit-headers. */
export function sendLimitHeaders(reply: FastifyReply, max: number, { count, resetS }: Count): void {
  reply.headers({
    'ratelimit-limit': max,
    'ratelimit-remaining': Math.max(0, max - count),
    'ratelimit-reset': resetS,
  })
}
