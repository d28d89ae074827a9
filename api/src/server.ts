/** The HTTP server of the public API and of the service API: the plugins that both need. The order of the plugins matters. */
import { randomUUID } from 'node:crypto'
import { limitPipelining } from '@spillway/worker/pipeline-limit'
import { listOf } from '@spillway/worker/settings'
import type { Tracing } from '@spillway/worker/tracing'
import { type FastifyBaseLogger, type FastifyInstance, fastify } from 'fastify'
import type { GatewayConfig } from './config.js'
import { clientGonePlugin } from './http/client-gone.js'
import { drainPlugin, stalledConnectionsPlugin } from './http/connections.js'
import { type DocsOptions, docsPlugin } from './http/docs.js'
import { jsonBodyPlugin, messageRulesPlugin } from './http/message-rules.js'
import type { GatewayMetrics } from './http/metrics.js'
import { noteUnrouted, requestLogPlugin, requestMetricsPlugin } from './http/request-log.js'
import { ownSchemas, serverOptions } from './http/server-options.js'
import type { LoadShedder } from './load-shedding/load-shedder.js'
import { loadSheddingPlugin } from './load-shedding/plugin.js'
import type { DeviceOf } from './load-shedding/preference.js'
import { toApiError } from './problems/foreign-errors.js'
import {
  answerHeadersPlugin,
  connectionProblem,
  problemPlugin,
  sendConnectionProblem,
  sendProblem,
} from './problems/plugin.js'
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
    // Fastify runs no hooks for these two.
    clientErrorHandler({ code }, socket) {
      const requests = app.requestsOn(socket)
      // The client would take this answer for the answer of an earlier request.
      if (requests.some(({ raw }) => raw.complete) || !socket.writable) return void socket.destroy()
      // What follows on the connection would be an error again.
      socket.pause()
      const error = connectionProblem(code)
      // A request whose body is broken off is noted when its connection ends; nobody asked anything on an unused connection.
      const isNoted = requests.length === 0 && socket.bytesRead > 0
      app.whenRejectionIsDue(() => {
        if (isNoted) noteUnrouted(error, { log, metrics })
        sendConnectionProblem(error, socket, app.connectionProblemHeaders?.(socket))
      })
    },
    frameworkErrors(thrown, request, reply) {
      const error = toApiError(thrown)
      app.whenRejectionIsDue(() => {
        noteUnrouted(error, { log: request.log, metrics, method: request.method })
        sendProblem(error, request, reply)
      })
    },
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
  if (tracing !== undefined) await app.register(import('./http/request-trace.js'))
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
