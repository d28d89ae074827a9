/**
 * Limits on credential requests, per address and per account, counted in Redis so that all gateways share them. That of the
 * address comes before the body is read: what is refused to it costs nothing more, and an invalid request counts as well. That
 * of the account needs a valid body. Without Redis they let through: the queue is away as well then, and nothing is hashed.
 *
 * An account is not counted for what is refused to an address: one client, whose refusals cost it nothing, could otherwise
 * lock out as many accounts as it can name. And only a client that an account refuses is told of the account's count: to
 * others it would say whether and when somebody uses it.
 */
import { createHash } from 'node:crypto'
import type { RedisConnection } from '@spillway/worker/client'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { networkOf } from '../client-network.js'
import { normalizeEmail } from '../credentials.js'
import { ApiError } from '../errors.js'
import { type Count, createRequestCounts } from '../request-counts.js'

const WINDOW_MS = 60_000

export interface LimitsOptions {
  redis: RedisConnection
  queuePrefix: string
  /** Requests a minute; 0 is no limit. */
  perAddress: number
  perAccount: number
}

export const limitsPlugin = fp(
  async (app: FastifyInstance, { redis, queuePrefix, perAddress, perAccount }: LimitsOptions) => {
    const countRequest = createRequestCounts(redis, { windowMs: WINDOW_MS })
    const count = (name: string) => countRequest(`${queuePrefix}:limit:${name}`).catch(() => undefined)

    app.decorate('limitAddress', async (request: FastifyRequest, reply: FastifyReply) => {
      if (perAddress === 0) return
      const counted = await count(`address:${networkOf(request.ip)}`)
      if (counted === undefined) return
      tell(reply, perAddress, counted)
      if (counted.count > perAddress) throw refusal('address_limit', counted)
    })
    app.decorate('limitAccount', async (request: FastifyRequest, reply: FastifyReply) => {
      if (perAccount === 0) return
      const counted = await count(`account:${accountOf(request)}`)
      if (counted === undefined || counted.count <= perAccount) return
      tell(reply, perAccount, counted)
      throw refusal('account_limit', counted)
    })
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

function refusal(reason: 'address_limit' | 'account_limit', { resetS }: Count): ApiError {
  return new ApiError('too_many_requests', { reason, retryAfterS: Math.max(1, resetS) })
}

/** A digest: addresses of accounts are nobody's business in Redis. */
function accountOf({ body, user }: FastifyRequest): string {
  const email = typeof body === 'object' && body !== null && 'email' in body ? String(body.email) : undefined
  const account = email === undefined ? user.sub : normalizeEmail(email)
  return createHash('sha256').update(account).digest('base64url')
}

declare module 'fastify' {
  interface FastifyInstance {
    /** `onRequest` hook that counts a request against the limit of its address. */
    limitAddress(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /** `preHandler` hook that counts it against the limit of its account: the body is valid, or the user known. */
    limitAccount(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
}
