/** One rate limit as a hook of requests. Requests are counted in Redis, so that all gateways share the counts. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, type RefusalReason } from '../problems/errors.js'
import type { Count } from './request-counts.js'
import { type CountingRedis, createSharedCounts } from './shared-counts.js'

/** One minute. */
const WINDOW_MS = 60_000

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

/**
 * Returns how to make a limit. While Redis is unreachable limits allow everything: the queue is unreachable too, so
 * nothing is hashed. A count that fails for another reason allows its request as well, and is logged (toCountingRedis).
 */
export function createLimits(redis: readonly CountingRedis[], queuePrefix: string): (limit: Limit) => LimitRequest {
  return ({ max, windowMs = WINDOW_MS, reason, nameOf, headers }) => {
    const countRequest = createSharedCounts(redis, { windowMs })
    return async function limitRequest(request, reply) {
      if (max === 0) return
      const counted = await countRequest(`${queuePrefix}:limit:${nameOf(request)}`).catch(() => undefined)
      if (counted === undefined) return
      const refused = counted.count > max
      if (refused || headers === 'always') sendLimitHeaders(reply, max, counted)
      if (refused) throw new ApiError('too_many_requests', { reason, retryAfterS: Math.max(1, counted.resetS) })
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
