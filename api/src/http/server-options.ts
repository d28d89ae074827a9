/** Fastify options of all listeners: logging, timeouts, and answers to invalid requests. */
import { listOf } from '@spillway/common/settings'
import { type FastifyBaseLogger, type FastifyHttpOptions, LogController, type RawServerDefault } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { AddressRanges } from './client-network.js'
import { toApiError } from './errors.js'
import { connectionProblem, sendConnectionProblem, sendProblem } from './problems.js'
import { requestIds } from './request-id.js'

/** How often Node looks for overdue requests, which get 408. Its 30 s would double the limit. */
export const TIMEOUT_CHECK_MS = 1_000

/** The most requests on a connection. It is closed with its last answer. */
const REQUESTS_PER_CONNECTION = 1_000

/** Options of Ajv: our own schemas need no validation. Unknown keywords still throw. */
export const ownSchemas = { meta: false, validateSchema: false }

export function serverOptions(
  { requestTimeoutMs, keepAliveS, trustProxy }: GatewayConfig,
  log: FastifyBaseLogger,
): FastifyHttpOptions<RawServerDefault> {
  const trustedProxies = listOf(trustProxy)
  const proxies = new AddressRanges(trustedProxies)
  return {
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: requestIds(proxies),
    // A starved machine may take longer than Fastify's ten seconds to load a plugin.
    pluginTimeout: 0,
    // Bounds how many requests a client can pipeline. Other clients open a new connection.
    maxRequestsPerSocket: REQUESTS_PER_CONNECTION,
    // From the first byte, or the opening of a connection, to the last byte of the body.
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveS * 1_000,
    // Fastify would not trust an entry `address:port` of X-Forwarded-For.
    trustProxy: trustedProxies.length > 0 && ((address) => proxies.has(address)),
    clientErrorHandler: ({ code }, socket) => sendConnectionProblem(connectionProblem(code), socket),
    frameworkErrors: (error, request, reply) => sendProblem(toApiError(error), request, reply),
    // A closing gateway answers requests on open connections, and ends each with its answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Fastify passes on only requestTimeout. Node's 60 s for headers would stay in force.
    http: {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // See message-rules.ts.
      requireHostHeader: false,
    },
  }
}
