/** The HTTP server of the public API and of the service API: the plugins that both need. The order of the plugins matters. */

import { randomUUID } from 'node:crypto'
import { type Context, context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { limitPipelining } from '@spillway/worker/pipeline-limit'
import { listOf } from '@spillway/worker/settings'
import type { Tracing } from '@spillway/worker/tracing'
import { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from './config.js'
import { clientGonePlugin } from './http/client-gone.js'
import { drainPlugin, stalledConnectionsPlugin } from './http/connections.js'
import { type DocsOptions, docsPlugin } from './http/docs.js'
import { jsonBodyPlugin, messageRulesPlugin } from './http/message-rules.js'
import type { GatewayMetrics } from './http/metrics.js'
import { requestLogPlugin, requestMetricsPlugin } from './http/request-log.js'
import { ownSchemas, serverOptions } from './http/server-options.js'
import type { LoadShedder } from './load-shedding/load-shedder.js'
import { loadSheddingPlugin } from './load-shedding/plugin.js'
import type { DeviceOf } from './load-shedding/preference.js'
import { answerHeadersPlugin, problemPlugin, sendConnectionProblem } from './problems/plugin.js'
import { formats } from './schemas/credentials.js'

/** The time that a request needs in addition to its wait, in milliseconds. */
const CLOSE_MARGIN_MS = 5_000

/** The longest time that closing takes, in milliseconds: then requests whose bodies have not arrived are cut off. */
export function closeTimeMs({ LOGIN_WAIT_MS }: GatewayConfig): number {
  return LOGIN_WAIT_MS + CLOSE_MARGIN_MS
}

export interface ServerDeps {
  /** Whether the gateway was told to stop. */
  isDraining(): boolean
  metrics: GatewayMetrics
  shedder: LoadShedder
  /** Undefined when traces are not exported. */
  tracing?: Tracing | undefined
  log: FastifyBaseLogger
}

export interface ServerOptions {
  bodyLimitBytes: number
  docs: DocsOptions
  /** Identifies known devices, whose requests go first in an overload. */
  deviceOf?: DeviceOf
}

/** Builds the server, without routes. */
export async function buildServer(
  config: GatewayConfig,
  { isDraining, metrics, shedder, tracing, log }: ServerDeps,
  { bodyLimitBytes, docs, deviceOf }: ServerOptions,
): Promise<FastifyInstance> {
  const app: FastifyInstance = fastify({
    ...serverOptions({
      ...{ log, requestTimeoutMs: config.REQUEST_TIMEOUT_MS },
      trustedProxies: listOf(config.TRUST_PROXY),
    }),
    genReqId: () => randomUUID(),
    bodyLimit: bodyLimitBytes,
    // While it closes, a gateway still answers requests on open connections, and closes each connection with its answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // The client would take this answer for the answer of an earlier request.
    clientErrorHandler: (error, socket) =>
      app.owesAnswer(socket)
        ? socket.destroy()
        : sendConnectionProblem(error, socket, app.connectionProblemHeaders?.(socket)),
    ajv: {
      customOptions: {
        ...ownSchemas,
        allErrors: true,
        coerceTypes: false,
        removeAdditional: false,
        discriminator: true,
        formats,
      },
    },
  })

  // First: every later plugin relies on connections being tracked.
  await app.register(clientGonePlugin)
  await app.register(drainPlugin, { graceMs: closeTimeMs(config), isDraining })
  app.addHook('onReady', async () => limitPipelining(app.server))
  await app.register(stalledConnectionsPlugin, { stalledMs: config.REQUEST_TIMEOUT_MS })
  if (tracing !== undefined) await app.register(import('./server.js'))
  await app.register(requestLogPlugin)
  await app.register(requestMetricsPlugin, { metrics })
  await app.register(answerHeadersPlugin)
  await app.register(messageRulesPlugin)
  await app.register(loadSheddingPlugin, { shedder, metrics, bodyLimitBytes, deviceOf, isDraining })
  await app.register(problemPlugin)
  await app.register(jsonBodyPlugin)
  await app.register(docsPlugin, docs)
  return app
}

/**
 * A server span for every request (OpenTelemetry's semantic conventions for HTTP), a child of the caller's span in W3C trace context.
 * Registered only when traces are exported, because this module loads OpenTelemetry's API.
 */

const CLIENT_GONE = 499

export default fp(
  async (app: FastifyInstance) => {
    const tracer = trace.getTracer('spillway')
    const contexts = new WeakMap<FastifyRequest, Context>()

    app.addHook('onRequest', async (request) => {
      const { method, routeOptions } = request
      // Probes and scrapes would fill the traces.
      if (!routeOptions.url?.startsWith('/v1/')) return
      const span = tracer.startSpan(
        `${method} ${routeOptions.url}`,
        { kind: SpanKind.SERVER, attributes: { 'http.request.method': method, 'http.route': routeOptions.url } },
        propagation.extract(context.active(), request.headers),
      )
      contexts.set(request, trace.setSpan(context.active(), span))
      request.log = request.log.child({ traceId: span.spanContext().traceId })
    })
    app.addHook('onResponse', async (request, reply) => end(request, reply.statusCode))
    app.onClientGone((request) => end(request, CLIENT_GONE))

    function end(request: FastifyRequest, status: number): void {
      const requestContext = contexts.get(request)
      const span = requestContext && trace.getSpan(requestContext)
      if (span === undefined) return
      span.setAttribute('http.response.status_code', status)
      if (request.errorCode !== undefined) span.setAttribute('error.type', request.errorCode)
      if (request.jobId !== undefined) span.setAttribute('messaging.message.id', request.jobId)
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    }

    app.decorateRequest('inTrace', function <T>(this: FastifyRequest, begin: () => T): T {
      const requestContext = contexts.get(this)
      return requestContext === undefined ? begin() : context.with(requestContext, begin)
    })
  },
  { name: 'request-trace' },
)

declare module 'fastify' {
  interface FastifyRequest {
    /** Runs `begin` in the request's trace context, which lasts until the first await. Undefined when nothing is traced. */
    inTrace?<T>(begin: () => T): T
  }
}
