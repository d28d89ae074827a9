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
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { accountDigest, accountOfEmail } from './account-name.js'
import { networkOf } from './client-network.js'
import type { CountingRedis } from './counts.js'
import { createLimits, type LimitRequest } from './limiter.js'

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
