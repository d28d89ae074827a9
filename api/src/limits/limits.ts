/**
 * Limits on requests, counted in Redis so that all gateways share them: those with credentials per address and per account,
 * refreshes per address and per session, redemptions per address. That of the address comes before the body is read: what is refused
 * to it costs nothing more, and an invalid request counts as well. The other needs a valid body. Without Redis they let
 * through: the queue is away as well then, and nothing is hashed.
 *
 * An account or session is not counted for what is refused to an address: one client, whose refusals cost it nothing, could otherwise
 * lock out as many accounts as it can name. And only a client that an account refuses is told of the account's count: to
 * others it would say whether and when somebody uses it.
 */
import { createHash } from 'node:crypto'
import type { RedisConnection } from '@spillway/client'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError, type RefusalReason } from '../problems/errors.js'
import { normalizeEmail } from '../schemas/credentials.js'
import { networkOf } from './client-network.js'
import { type Count, createRequestCounts } from './request-counts.js'

const WINDOW_MS = 60_000

export interface LimitsOptions {
  redis: RedisConnection
  queuePrefix: string
  /** Requests a minute; 0 is no limit. */
  perAddress: number
  perAccount: number
  refreshPerAddress: number
  refreshPerSession: number
  redeemPerAddress: number
  /** The session of a refresh token under a name that says nothing to a reader of Redis. */
  sessionNameOf(refreshToken: string): string
}

interface Limit {
  max: number
  reason: RefusalReason
  /** What is counted together. */
  nameOf(request: FastifyRequest): string
  /** Whether its count is told with every answer, or with the refusal alone. */
  told: 'always' | 'when refused'
}

export const limitsPlugin = fp(
  async (app: FastifyInstance, options: LimitsOptions) => {
    const countRequest = createRequestCounts(options.redis, { windowMs: WINDOW_MS })

    const limit = ({ max, reason, nameOf, told }: Limit) =>
      async function limitRequest(request: FastifyRequest, reply: FastifyReply): Promise<void> {
        if (max === 0) return
        const counted = await countRequest(`${options.queuePrefix}:limit:${nameOf(request)}`).catch(() => undefined)
        if (counted === undefined) return
        const refused = counted.count > max
        if (refused || told === 'always') tell(reply, max, counted)
        if (refused) throw new ApiError('too_many_requests', { reason, retryAfterS: Math.max(1, counted.resetS) })
      }
    const limitAddress = (kind: string, max: number) =>
      limit({ max, reason: 'address_limit', nameOf: ({ ip }) => `${kind}:${networkOf(ip)}`, told: 'always' })

    app.decorate('limitAddress', limitAddress('address', options.perAddress))
    app.decorate(
      'limitAccount',
      limit({
        max: options.perAccount,
        reason: 'account_limit',
        nameOf: (request) => `account:${accountOf(request)}`,
        told: 'when refused',
      }),
    )
    app.decorate('limitRefreshAddress', limitAddress('refresh', options.refreshPerAddress))
    app.decorate(
      'limitSession',
      limit({
        max: options.refreshPerSession,
        reason: 'session_limit',
        nameOf: (request) => `session:${options.sessionNameOf(refreshTokenOf(request))}`,
        told: 'when refused',
      }),
    )
    app.decorate('limitRedeemAddress', limitAddress('redeem', options.redeemPerAddress))
  },
  { name: 'limits' },
)

/** The IETF's draft header fields. */
function tell(reply: FastifyReply, max: number, { count, resetS }: Count): void {
  reply.headers({
    'ratelimit-limit': max,
    'ratelimit-remaining': Math.max(0, max - count),
    'ratelimit-reset': resetS,
  })
}

/** A digest: addresses of accounts are nobody's business in Redis. */
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
    limitAddress(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /** `preHandler` hook that counts it against the limit of its account: the body is valid, or the user known. */
    limitAccount(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /** The same two for what refreshes or ends a session. */
    limitRefreshAddress(request: FastifyRequest, reply: FastifyReply): Promise<void>
    limitSession(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /** `onRequest` hook for the redemption of a ticket. */
    limitRedeemAddress(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
}
