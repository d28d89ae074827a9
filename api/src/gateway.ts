/** One gateway process: connections opened, the public and the ops listener started, everything closed in order. */
import { setTimeout as sleep } from 'node:timers/promises'
import { connectDatabase, poolUse } from '@spillway/prisma'
import { connectRedis, createPasswordClient, parseKeyring } from '@spillway/worker/client'
import { startFallback } from '@spillway/worker/fallback'
import type { Logger } from '@spillway/worker/log'
import { createQueueReporter } from '@spillway/worker/queue-report'
import { startTracing } from '@spillway/worker/tracing'
import { buildApp } from './app.js'
import type { GatewayConfig } from './config.js'
import { startDeletingExpiredSessions } from './expired-sessions.js'
import { exposeGatewayState } from './gateway-state.js'
import { createGatewayMetrics } from './metrics.js'
import { buildOps } from './ops.js'
import { parseSigningKeys } from './signing-keys.js'

/** Requests that come before the queue has been read would be put off; where Redis is away they are refused anyhow. */
const FIRST_LOOK_MS = 500
/**
 * Connections the system holds until they are accepted, where net.core.somaxconn allows it. In a spike Node's own 511 are
 * too few: the others are dropped, and try again after 1, 3 and 7 s.
 */
const BACKLOG = 4_096

export interface Gateway {
  url: string
  opsUrl: string
  /** Stops listening, answers what is in hand, then lets go of PostgreSQL and Redis. */
  close(): Promise<void>
}

/**
 * Starts a gateway. PostgreSQL and Redis may be away: it starts all the same and says in /readyz what is missing. The
 * environment is handed on to a fallback worker, and not read here.
 */
export async function startGateway(config: GatewayConfig, env: NodeJS.ProcessEnv, log: Logger): Promise<Gateway> {
  const keyring = parseKeyring(config.SPILLWAY_SEAL_KEYS)
  const keys = parseSigningKeys(config.SPILLWAY_JWT_KEYS)
  const database = connectDatabase({ url: config.DATABASE_URL, poolSize: config.DATABASE_POOL_SIZE })
  const redis = connectRedis(config.REDIS_URL, 'producer')
  redis.on('error', (error) => log.warn({ err: error, connection: 'limits' }, 'redis connection failed'))
  const metrics = createGatewayMetrics()
  const tracing = await startTracing({ service: 'spillway-gateway', endpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT })
  const passwords = createPasswordClient({
    redisUrl: config.REDIS_URL,
    prefix: config.QUEUE_PREFIX,
    keyring,
    jobLifeMs: config.TICKET_TTL_MS,
    log,
    ...(tracing ? { telemetry: tracing.telemetry } : {}),
    observer: {
      verdictReceived: (source) => metrics.verdicts.inc({ source }),
      verdictBroken: () => metrics.sealFailures.inc({ purpose: 'verdict' }),
      jobAddedAgain: () => metrics.jobsAddedAgain.inc(),
    },
  })
  const reporter = createQueueReporter({ redisUrl: config.REDIS_URL, prefix: config.QUEUE_PREFIX, log })
  const fallback = startFallback({
    concurrency: config.LOCAL_FALLBACK_CONCURRENCY,
    env,
    isAlone: () => passwords.load().known && passwords.load().workers === 0,
    log,
  })
  exposeGatewayState(metrics.registry, {
    passwords,
    reporter,
    poolUse: () => poolUse(database),
    isFallingBack: fallback.active,
  })
  const expiredSessions = startDeletingExpiredSessions({ database, log })
  let draining = false
  const app = await buildApp(config, {
    database,
    passwords,
    keyring,
    keys,
    redis,
    metrics,
    tracing,
    log,
    isDraining: () => draining,
  })
  const ops = await buildOps(config, { metrics, passwords, reporter, log })

  async function close(): Promise<void> {
    draining = true
    await sleep(config.DRAIN_MS)
    await release()
  }

  async function release(): Promise<void> {
    await app.close()
    await fallback.close()
    await ops.close()
    reporter.close()
    await passwords.close()
    redis.disconnect()
    await expiredSessions.close()
    await database.$disconnect()
    await tracing?.close()
  }

  try {
    await passwords.whenKnown(FIRST_LOOK_MS)
    const opsUrl = await ops.listen({ host: config.OPS_HOST, port: config.OPS_PORT })
    const url = await app.listen({ host: config.HOST, port: config.PORT, backlog: BACKLOG })
    return { url, opsUrl, close }
  } catch (error) {
    await release()
    throw error
  }
}
