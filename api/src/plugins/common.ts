/** The plugins that the public API and the service API share. Their order matters. */
import { limitPipelining } from '@spillway/common/pipeline-limit'
import type { Tracing } from '@spillway/common/tracing'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../config.js'
import { clientGonePlugin } from './client-gone.js'
import { drainPlugin, stalledConnectionsPlugin } from './connections.js'
import { type DocsOptions, docsPlugin } from './docs.js'
import type { LoadShedder } from './load-shedding/load-shedder.js'
import { loadSheddingPlugin } from './load-shedding/plugin.js'
import type { DeviceOf } from './load-shedding/preference.js'
import { jsonBodyPlugin, messageRulesPlugin } from './message-rules.js'
import type { GatewayMetrics } from './metrics.js'
import { answerHeadersPlugin, problemPlugin } from './problems.js'
import { requestLogPlugin, requestMetricsPlugin } from './request-log.js'

/** The time that a request needs in addition to its wait, in milliseconds. */
const CLOSE_MARGIN_MS = 5_000

/** The longest time that closing takes, in milliseconds: then requests whose bodies have not arrived are cut off. */
export function closeTimeMs({ LOGIN_WAIT_MS }: GatewayConfig): number {
  return LOGIN_WAIT_MS + CLOSE_MARGIN_MS
}

export interface CommonOptions {
  config: GatewayConfig
  /** Whether the gateway was told to stop. */
  isDraining(): boolean
  metrics: GatewayMetrics
  shedder: LoadShedder
  /** Undefined when traces are not exported. */
  tracing: Tracing | undefined
  bodyLimitBytes: number
  docs: DocsOptions
  /** Identifies known devices, whose requests go first in an overload. */
  deviceOf?: DeviceOf | undefined
}

export const commonPlugin = fp(
  async (app: FastifyInstance, options: CommonOptions) => {
    const { config, isDraining, metrics, shedder, tracing, bodyLimitBytes, docs, deviceOf } = options
    // First: every later plugin relies on connections being tracked.
    await app.register(clientGonePlugin)
    await app.register(drainPlugin, { graceMs: closeTimeMs(config), isDraining })
    app.addHook('onReady', async () => limitPipelining(app.server))
    await app.register(stalledConnectionsPlugin, { stalledMs: config.REQUEST_TIMEOUT_MS })
    if (tracing !== undefined) await app.register(import('./request-trace.js'))
    await app.register(requestLogPlugin)
    await app.register(requestMetricsPlugin, { metrics })
    await app.register(answerHeadersPlugin)
    await app.register(messageRulesPlugin)
    await app.register(loadSheddingPlugin, { shedder, metrics, bodyLimitBytes, deviceOf, isDraining })
    await app.register(problemPlugin)
    await app.register(jsonBodyPlugin)
    await app.register(docsPlugin, docs)
  },
  { name: 'common' },
)
