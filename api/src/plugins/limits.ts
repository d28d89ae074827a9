/**
 * Limits on credential requests, per address and per account, counted in Redis so that all gateways share them. They come
 * before anything that costs. Without Redis they let through: the queue is away as well then, and nothing is hashed.
 *
 * An account is not counted for what is refused to an address: one client, whose refusals cost it nothing, could otherwise
 * lock out as many accounts as it can name.
 */
import { createHash } from 'node:crypto'
import type { RedisConnection } from '@spillway/worker/client'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { networkOf } from '../client-network.js'
import { normalizeEmail } from '../credentials.js'
import { ApiError } from '../errors.js'
import { createRequestCounts } from '../request-counts.js'

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
    const limits = [
      { reason: 'address_limit', max: perAddress, nameOf: ({ ip }: FastifyRequest) => `address:${networkOf(ip)}` },
      {
        reason: 'account_limit',
        max: perAccount,
        nameOf: (request: FastifyRequest) => `account:${accountOf(request)}`,
      },
    ] as const
    const effective = limits.filter(({ max }) => max > 0)

    app.decorate('limitCredentials', async (request: FastifyRequest, reply: FastifyReply) => {
      if (effective.length === 0) return
      const keyed = effective.map((limit) => ({ ...limit, key: `${queuePrefix}:limit:${limit.nameOf(request)}` }))
      const counted = await countRequest(keyed).catch(() => [])
      let nearest = Number.POSITIVE_INFINITY
      for (const { reason, max, count, resetS } of counted) {
        const remaining = Math.max(0, max - count)
        // The IETF's draft header fields, of whichever limit is nearer.
        if (remaining <= nearest) {
          reply.headers({ 'ratelimit-limit': max, 'ratelimit-remaining': remaining, 'ratelimit-reset': resetS })
          nearest = remaining
        }
        if (count > max) throw new ApiError('too_many_requests', { reason, retryAfterS: Math.max(1, resetS) })
      }
    })
  },
  { name: 'limits' },
)

/** A digest: addresses of accounts are nobody's business in Redis. */
function accountOf({ body, user }: FastifyRequest): string {
  const email = typeof body === 'object' && body !== null && 'email' in body ? String(body.email) : undefined
  const account = email === undefined ? user.sub : normalizeEmail(email)
  return createHash('sha256').update(account).digest('base64url')
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Hook that counts a request against its limits; to run once the body is valid and the user known. */
    limitCredentials(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
}
