/** One rate limit as a hook of requests. Requests are counted in Redis, so that all gateways share the counts. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, type RefusalReason } from '../problems/errors.js'
import { type Count, type CountingRedis, countIn } from './counts.js'

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
