/** Fastify options of all listeners: logging, timeouts, and answers to invalid requests. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listOf } from '@spillway/common/settings'
import { newId } from '@spillway/queue/wire/id'
import {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  LogController,
  type RawServerDefault,
} from 'fastify'
import type { GatewayConfig } from '../config.js'
import { toApiError } from './errors.js'
import { connectionProblem, REQUEST_ID_HEADER, sendConnectionProblem, sendProblem } from './problems.js'

/** How often Node looks for overdue requests, which get 408. Its 30 s would double the limit. */
export const TIMEOUT_CHECK_MS = 1_000

/** Options of Ajv: our own schemas need no validation. Unknown keywords still throw. */
export const ownSchemas = { meta: false, validateSchema: false }

export function serverOptions(
  {
    REQUEST_TIMEOUT_MS,
    KEEP_ALIVE_S,
    TRUST_PROXY,
  }: Pick<GatewayConfig, 'REQUEST_TIMEOUT_MS' | 'KEEP_ALIVE_S' | 'TRUST_PROXY'>,
  log: FastifyBaseLogger,
): FastifyHttpOptions<RawServerDefault> {
  const trustedProxies = listOf(TRUST_PROXY)
  return {
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    requestIdHeader: REQUEST_ID_HEADER,
    genReqId: () => newId(),
    // A starved machine may take longer than Fastify's ten seconds to load a plugin.
    pluginTimeout: 0,
    // From the first byte, or the opening of a connection, to the last byte of the body.
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_S * 1_000,
    trustProxy: trustedProxies.length > 0 && trustedProxies,
    clientErrorHandler: ({ code }, socket) => sendConnectionProblem(connectionProblem(code), socket),
    frameworkErrors: (error, request, reply) => sendProblem(toApiError(error), request, reply),
    // A closing gateway answers requests on open connections, and ends each with its answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Fastify passes on requestTimeout alone; Node's 60 s for headers would stay in force.
    http: {
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // See message-rules.ts.
      requireHostHeader: false,
    },
  }
}

type Intercept = (request: IncomingMessage, response: ServerResponse, next: () => void) => void

/** Looks at requests before Fastify does. The last interceptor sees requests first. */
export function interceptRequests(app: FastifyInstance, intercept: Intercept): void {
  const handlers = app.server.listeners('request')
  app.server.removeAllListeners('request')
  app.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    intercept(request, response, () => {
      for (const handle of handlers) handle.call(app.server, request, response)
    })
  })
}
