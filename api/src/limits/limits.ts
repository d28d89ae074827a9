/**
 * Rate limits of the public API: requests with credentials per address and per account, refreshes per address and per session,
 * redemptions per address. The limit of the address is checked before the body is read: refusals stay cheap, and invalid requests count.
 * The other limit needs a valid body.
 *
 * A request that the limit of the address refuses does not count for its account or session: otherwise one client could lock out any
 * number of accounts at no cost. The count of an account is sent only when the account's limit refuses: otherwise it would reveal
 * whether and when an account is used.
 */
import { createHash } from 'node:crypto'
import type { RedisConnection } from '@spillway/client/queue-client'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { normalizeEmail } from '../schemas/credentials.js'
import { networkOf } from './client-network.js'
import { createLimits, type LimitRequest } from './limit.js'

export interface LimitsOptions {
  redis: RedisConnection
  queuePrefix: string
  /** Requests a minute; 0 is no limit. */
  perAddress: number
  perAccount: number
  refreshPerAddress: number
  refreshPerSession: number
  redeemPerAddress: number
  /** A name for the session of a refresh token that reveals nothing to a reader of Redis. */
  sessionNameOf(refreshToken: string): string
}

export const limitsPlugin = fp(
  async (app: FastifyInstance, options: LimitsOptions) => {
    const limit = createLimits(options.redis, options.queuePrefix)
    const limitAddress = (kind: string, max: number) =>
      limit({ max, reason: 'address_limit', nameOf: ({ ip }) => `${kind}:${networkOf(ip)}`, headers: 'always' })

    app.decorate('limitAddress', limitAddress('address', options.perAddress))
    app.decorate(
      'limitAccount',
      limit({
        max: options.perAccount,
        reason: 'account_limit',
        nameOf: (request) => `account:${accountOf(request)}`,
        headers: 'when refused',
      }),
    )
    app.decorate('limitRefreshAddress', limitAddress('refresh', options.refreshPerAddress))
    app.decorate(
      'limitSession',
      limit({
        max: options.refreshPerSession,
        reason: 'session_limit',
        nameOf: (request) => `session:${options.sessionNameOf(refreshTokenOf(request))}`,
        headers: 'when refused',
      }),
    )
    app.decorate('limitRedeemAddress', limitAddress('redeem', options.redeemPerAddress))
  },
  { name: 'limits' },
)

/** A digest, so that Redis holds no e-mail addresses. */
function accountOf({ body, user }: FastifyRequest): string {
  const email = typeof body === 'object' && body !== null && 'email' in body ? String(body.email) : undefined
  const account = email === undefined ? user.sub : normalizeEmail(email)
  return createHash('sha256').update(account).digest('base64url')
}

function refreshTokenOf({ body }: FastifyRequest): string {
  return typeof body === 'object' && body !== null && 'refreshToken' in body ? String(body.refreshToken) : ''
}

declare module 'fastify' {
  interface FastifyInstance {
    /** `onRequest` hook that counts a request against the limit of its address. */
    limitAddress: LimitRequest
    /** `preHandler` hook that counts a request against the limit of its account, after validation and authentication. */
    limitAccount: LimitRequest
    /** The same two hooks for requests that refresh or end a session. */
    limitRefreshAddress: LimitRequest
    limitSession: LimitRequest
    /** `onRequest` hook for redemptions of tickets. */
    limitRedeemAddress: LimitRequest
  }
}
