/**
 * Limits on credential requests, per address and per account, counted in Redis so that all gateways share them. They come
 * before anything that costs. Without Redis they let through: the queue is away as well then, and nothing is hashed.
 */
import { createHash } from 'node:crypto'
import rateLimit, { normalizeIP } from '@fastify/rate-limit'
import type { RedisConnection } from '@spillway/worker/client'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { normalizeEmail } from '../credentials.js'
import { ApiError } from '../errors.js'

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
    await app.register(rateLimit, { global: false, redis, nameSpace: `${queuePrefix}:limit:`, skipOnError: true })
    const limits = [
      // IPv6 by networks of /64: one customer has all the addresses of one.
      { reason: 'address_limit', max: perAddress, keyOf: ({ ip }: FastifyRequest) => `address:${normalizeIP(ip)}` },
      { reason: 'account_limit', max: perAccount, keyOf: (request: FastifyRequest) => `account:${accountOf(request)}` },
    ] as const
    const checks = limits
      .filter(({ max }) => max > 0)
      .map(({ reason, max, keyOf }) => ({
        reason,
        check: app.createRateLimit({ max, timeWindow: WINDOW_MS, keyGenerator: keyOf }),
      }))

    app.decorate('limitCredentials', async (request: FastifyRequest, reply: FastifyReply) => {
      const counts = await Promise.all(
        checks.map(async ({ reason, check }) => ({ reason, count: await check(request) })),
      )
      for (const { reason, count } of counts) {
        if (count.isAllowed) continue
        // The IETF's draft header fields, of whichever limit is nearer.
        const remaining = Number(reply.getHeader('ratelimit-remaining') ?? Number.POSITIVE_INFINITY)
        if (count.remaining <= remaining) {
          reply.headers({
            'ratelimit-limit': count.max,
            'ratelimit-remaining': count.remaining,
            'ratelimit-reset': count.ttlInSeconds,
          })
        }
        if (count.isExceeded)
          throw new ApiError('too_many_requests', { reason, retryAfterS: Math.max(1, count.ttlInSeconds) })
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
