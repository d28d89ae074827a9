/** The ops listener of a gateway: metrics for Prometheus, the live page and Bull Board for operators. The public port serves nothing of it. */
import helmet from '@fastify/helmet'
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { QueueReporter } from '@spillway/client/queue/report'
import type { PasswordClient, RedisConnection, RedisWatch } from '@spillway/client/queue-client'
import type { Database } from '@spillway/prisma'
import { limitPipelining } from '@spillway/worker/pipeline-limit'
import { listOf } from '@spillway/worker/settings'
import { type FastifyBaseLogger, type FastifyInstance, fastify } from 'fastify'
import { auditEventNames } from '../audit/events.js'
import { readEvents } from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import { clientGonePlugin } from '../http/client-gone.js'
import { drainPlugin, stalledConnectionsPlugin } from '../http/connections.js'
import { jsonBodyPlugin, messageRulesPlugin } from '../http/message-rules.js'
import type { GatewayMetrics } from '../http/metrics.js'
import { ownSchemas, serverOptions } from '../http/server-options.js'
import { problemPlugin } from '../problems/plugin.js'
import { operatorsPlugin } from './access.js'
import { boardPlugin } from './board.js'
import { livePlugin } from './live.js'

const BOARD_PATH = '/queues'
/** How long running answers may take when the port closes, in milliseconds. */
const CLOSE_MS = 1_000

export interface OpsDeps {
  /** Whether the gateway was told to stop. */
  isDraining(): boolean
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
  database: Database
  /** For what operators look at: long reads must not delay logins. */
  operatorsRedis: readonly { address: string; connection: RedisConnection }[]
  watch: RedisWatch
  log: FastifyBaseLogger
}

export async function buildOps(config: GatewayConfig, deps: OpsDeps): Promise<FastifyInstance> {
  const { metrics, log } = deps
  const { registry } = metrics
  const basePath = config.OPS_BASE_PATH
  const app: FastifyInstance = fastify({
    rewriteUrl: ({ url = '/' }) => withoutBase(url, basePath),
    ...serverOptions({
      ...{ log, requestTimeoutMs: config.REQUEST_TIMEOUT_MS },
      trustedProxies: listOf(config.TRUST_PROXY),
    }),
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // A mistyped parameter would show more than was asked for.
    ajv: { customOptions: { ...ownSchemas, removeAdditional: false } },
  })
  app.addHook('onReady', async () => limitPipelining(app.server))
  await app.register(clientGonePlugin)
  await app.register(drainPlugin, { graceMs: CLOSE_MS, isDraining: deps.isDraining })
  await app.register(stalledConnectionsPlugin, { stalledMs: config.REQUEST_TIMEOUT_MS })
  await app.register(problemPlugin)
  await app.register(messageRulesPlugin)
  await app.register(jsonBodyPlugin)
  await app.register(helmet, {
    // Bull Board needs inline styles. Its external fonts stay blocked; it works without them.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        frameAncestors: ["'none'"],
        baseUri: ["'self'"],
        formAction: ["'self'"],
      },
    },
    // HSTS is the TLS proxy's to set; plain HTTP on the loopback must stay reachable.
    strictTransportSecurity: false,
  })

  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  await app.register(async (operators) => {
    await operators.register(operatorsPlugin, {
      user: config.OPS_USER,
      password: config.OPS_PASSWORD,
      onFailure: () => metrics.operatorFailures.inc(),
    })
    await operators.register(livePlugin, {
      ...deps,
      redis: deps.operatorsRedis.map(({ connection }) => connection),
      queuePrefix: config.QUEUE_PREFIX,
      basePath,
      boardPath: BOARD_PATH,
    })
    if (config.AUDIT_RETENTION_DAYS > 0) await operators.register(auditPlugin, deps)
    await operators.register(boardPlugin, {
      redis: deps.operatorsRedis,
      watch: deps.watch,
      queuePrefix: config.QUEUE_PREFIX,
      readOnly: !config.OPS_ALLOW_WRITES,
      path: BOARD_PATH,
      basePath,
      logUrl: config.OPS_LOG_URL,
      showsMail: config.SMTP_URL !== '',
      links: [
        { text: 'Live', url: `${basePath}/` },
        { text: 'Metrics', url: `${basePath}/metrics` },
      ],
    })
  })
  return app
}

/** The URL of a request without the path at which a proxy has the pages: some proxies pass it on, others strip it. */
function withoutBase(url: string, basePath: string): string {
  if (basePath === '' || !url.startsWith(basePath)) return url
  const rest = url.slice(basePath.length)
  return rest.startsWith('/') ? rest : /^(\?|$)/.test(rest) ? `/${rest}` : url
}

// GET /audit on the ops port: the audit events, from the latest to the earliest, in pages.

const UUID = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'

/** Query parameters are texts. */
const Page = {
  type: 'object',
  properties: {
    user: { type: 'string', pattern: UUID },
    event: { type: 'string', enum: auditEventNames },
    before: { type: 'string', pattern: UUID },
    limit: { type: 'integer', minimum: 1, maximum: 500, default: 100 },
  },
  additionalProperties: false,
} as const

const auditPlugin: FastifyPluginAsyncJsonSchemaToTs<{ Options: { database: Database } }> = async (
  app,
  { database },
) => {
  app.get('/audit', { schema: { querystring: Page } }, async ({ query }, reply) => {
    const { user: userId, event, before, limit } = query
    const filter = {
      ...(userId === undefined ? {} : { userId }),
      ...(event === undefined ? {} : { event }),
      ...(before === undefined ? {} : { before }),
    }
    const events = await readEvents(database, { ...filter, limit })
    const next = events.length < limit ? null : (events.at(-1)?.id ?? null)
    return reply.header('cache-control', 'no-store').send({ events, next })
  })
}
