/** The ops port of a gateway: metrics, the live page, Bull Board and the audit. */
import helmet from '@fastify/helmet'
import type { QueueReporter } from '@spillway/queue/jobs/report'
import type { PasswordClient, RedisConnection, RedisWatch } from '@spillway/queue/queue-client'
import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../config.js'
import type { LoadShedder } from '../plugins/load-shedding/load-shedder.js'
import type { GatewayMetrics } from '../plugins/metrics.js'
import { operatorsPlugin } from './access.js'
import { operatorApiPlugin } from './api.js'
import { auditPlugin } from './audit.js'
import { boardPlugin } from './board.js'
import type { OperatorDeps } from './change.js'
import { livePlugin } from './live.js'
import type { NamedOperators } from './named.js'
import { runbooksPlugin } from './runbooks.js'

const BOARD_PATH = '/queues'

export interface OperatorPagesOptions extends OperatorDeps {
  config: GatewayConfig
  metrics: GatewayMetrics
  passwords: PasswordClient
  reporter: QueueReporter
  shedder: Pick<LoadShedder, 'delayMs'>
  namedOperators: NamedOperators | undefined
  /** For what operators look at: long reads must not delay logins. */
  operatorsRedis: readonly { address: string; connection: RedisConnection }[]
  watch: RedisWatch
}

export async function operatorPagesPlugin(app: FastifyInstance, options: OperatorPagesOptions): Promise<void> {
  const { config, metrics, passwords, database, audit, operatorsRedis, watch } = options
  const { registry } = metrics
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
      ...{ config, passwords, named: options.namedOperators },
      onFailure: () => metrics.operatorFailures.inc(),
    })
    await operators.register(livePlugin, { ...options, boardPath: BOARD_PATH })
    await operators.register(operatorApiPlugin, { ...options, queuePrefix: config.QUEUE_PREFIX })
    await operators.register(runbooksPlugin, { basePath: config.OPS_BASE_PATH })
    if (config.AUDIT_RETENTION_DAYS > 0) await operators.register(auditPlugin, { config, database, passwords })
    await operators.register(boardPlugin, { config, audit, redis: operatorsRedis, watch, path: BOARD_PATH })
  })
}

/** The URL without the path at which a proxy has the pages: some proxies strip it, some do not. */
export function withoutBase(url: string, basePath: string): string {
  if (basePath === '' || !url.startsWith(basePath)) return url
  const rest = url.slice(basePath.length)
  return rest.startsWith('/') ? rest : /^(\?|$)/.test(rest) ? `/${rest}` : url
}
