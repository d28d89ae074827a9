/** Fastify options of all listeners: logging, request timeouts, and answers to bytes that are not a valid request. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  LogController,
  type RawServerDefault,
} from 'fastify'
import { toApiError } from './foreign-errors.js'
import { connectionProblem, sendConnectionProblem, sendProblem } from './problems.js'

/** How often Node looks for overdue requests. Node's own 30 s would double the time limit; few connections have to be looked at. */
export const TIMEOUT_CHECK_MS = 1_000

export interface ListenerOptions {
  log: FastifyBaseLogger
  /**
   * From the first byte of a request, or the opening of a new connection, to the last byte of the body, in milliseconds. An overdue
   * request is answered with 408 at most TIMEOUT_CHECK_MS later.
   */
  requestTimeoutMs: number
  /** Addresses and CIDR ranges of the proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: string[]
}

/** Options of Ajv: the schemas of routes are our own and need no validation at each start. Unknown keywords still throw. */
export const ownSchemas = { meta: false, validateSchema: false }

export function serverOptions({
  log,
  requestTimeoutMs,
  trustedProxies,
}: ListenerOptions): FastifyHttpOptions<RawServerDefault> {
  return {
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A starved machine may take longer than Fastify's ten seconds to load a plugin.
    pluginTimeout: 0,
    requestTimeout: requestTimeoutMs,
    trustProxy: trustedProxies.length > 0 && trustedProxies,
    clientErrorHandler: ({ code }, socket) => sendConnectionProblem(connectionProblem(code), socket),
    frameworkErrors: (error, request, reply) => sendProblem(toApiError(error), request, reply),
    // Fastify passes on requestTimeout alone; Node's 60 s for headers would stay in force beside it.
    http: {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // See message-rules.ts.
      requireHostHeader: false,
    },
  }
}

// Looks at requests before Fastify does: for what must be cheap, and for what must be in every answer.

/** Answers a request, or calls `next` to pass it on. */
type Intercept = (request: IncomingMessage, response: ServerResponse, next: () => void) => void

/** The last one that is added sees requests first. */
export function interceptRequests(app: FastifyInstance, intercept: Intercept): void {
  const handlers = app.server.listeners('request')
  app.server.removeAllListeners('request')
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    intercept(request, response, () => {
      for (const handle of handlers) handle.call(app.server, request, response)
    })
  })
}
