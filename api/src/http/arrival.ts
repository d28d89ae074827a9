/**
 * How long a request may take to arrive: from its first byte, or on a new connection from its opening, to the last byte of its
 * body. Node looks for those that are overdue now and then, so that each ends within `timeoutMs` and ARRIVAL_CHECK_MS, with 408.
 */
import type { FastifyHttpOptions, RawServerDefault } from 'fastify'

/** What Node looks at are connections whose request is on its way, which are few. Its own 30 s would double the time. */
export const ARRIVAL_CHECK_MS = 1_000

/** Options of a server of ours. Fastify sets the time for requests alone, and Node's 60 s for headers would stay beside it. */
export function arrivalWithin(
  timeoutMs: number,
): Pick<FastifyHttpOptions<RawServerDefault>, 'requestTimeout' | 'http'> {
  return {
    requestTimeout: timeoutMs,
    http: { requestTimeout: timeoutMs, headersTimeout: timeoutMs, connectionsCheckingInterval: ARRIVAL_CHECK_MS },
  }
}
