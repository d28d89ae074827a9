/** One gateway process: connections opened, the public and the ops listener started, everything closed in order. */
import { setTimeout as sleep } from 'node:timers/promises'
import { connectRedis, createPasswordClient, parseKeyring, watchRedis } from '@spillway/client'
import { createQueueReporter } from '@spillway/client/queue/report'
import { connectDatabase, poolUse } from '@spillway/prisma'
import { beginClosing } from '@spillway/worker/closing'
import { startFallback } from '@spillway/worker/fallback'
import type { Logger } from '@spillway/worker/log'
import { startTracing } from '@spillway/worker/tracing'
import { BACKLOG, buildApp, closeTimeMs } from './app.js'
import type { GatewayConfig } from './config.js'
import { createGatewayMetrics } from './http/metrics.js'
import { createLoadShedder } from './load-shedding/load-shedder.js'
import { operations } from './operations/list.js'
import { exposeGatewayState } from './ops/gauges.js'
import { buildOps } from './ops/server.js'
import { startDeletingExpiredSessions } from './sessions/expired-sessions.js'
import { parseSigningKeys } from './sessions/signing-keys.js'

/** Requests that come before the queue has been read would be put off; where Redis is away they are refused anyhow. */
const FIRST_LOOK_MS = 500
/** How long a stopping gateway waits for each of those that it says farewell to. */
const FAREWELL_MS = 2_500
/** A fallback worker finishes what it has, for its own SHUTDOWN_GRACE_MS. It ends with this process at the latest. */
const FALLBACK_END_MS = 15_000

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
  const watch = watchRedis(log)
  watch.watch(redis, 'limits')
  const metrics = createGatewayMetrics(operations.map(({ kind }) => kind))
  const shedder = createLoadShedder(config.DATABASE_POOL_SIZE)
  const tracing = await startTracing({ service: 'spillway-gateway', endpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT })
  const passwords = createPasswordClient({
    redisUrl: config.REDIS_URL,
    prefix: config.QUEUE_PREFIX,
    keyring,
    jobLifeMs: config.TICKET_TTL_MS,
    log,
    watch,
    ...(tracing ? { telemetry: tracing.telemetry } : {}),
    observer: {
      verdictReceived: (source) => metrics.verdicts.inc({ source }),
      verdictBroken: () => metrics.sealFailures.inc({ purpose: 'verdict' }),
      jobAddedAgain: () => metrics.jobsAddedAgain.inc(),
    },
  })
  const reporter = createQueueReporter({ redisUrl: config.REDIS_URL, prefix: config.QUEUE_PREFIX, watch })
  const fallback = startFallback({
    concurrency: config.LOCAL_FALLBACK_CONCURRENCY,
    env,
    isAlone: () => passwords.load().known && passwords.load().workers === 0,
    log,
  })
  exposeGatewayState(metrics.registry, {
    passwords,
    reporter,
    shedder,
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
    shedder,
    tracing,
    log,
    isDraining: () => draining,
  })
  const ops = await buildOps(config, { metrics, passwords, reporter, redis, watch, log })

  async function close(): Promise<void> {
    draining = true
    await sleep(config.DRAIN_MS)
    await release()
  }

  /** Lets go of everything, whatever fails on the way. Rejects in the end if something did. */
  async function release(): Promise<void> {
    const { step, failure } = beginClosing('gateway', log)
    await step('answer what is in hand', closeTimeMs(config) + FAREWELL_MS, () => app.close())
    await step('end the fallback worker', FALLBACK_END_MS, fallback.close)
    await step('close the ops port', FAREWELL_MS, () => ops.close())
    await step('close the queue', FAREWELL_MS, passwords.close)
    await step('let go of Redis', FAREWELL_MS, () => {
      reporter.close()
      redis.disconnect()
    })
    await step('end the deletion of sessions', FAREWELL_MS, expiredSessions.close)
    await step('let go of PostgreSQL', FAREWELL_MS, () => database.$disconnect())
    await step('send the last traces', FAREWELL_MS, () => tracing?.close())
    const error = failure()
    if (error) throw error
  }

  try {
    await passwords.whenKnown(FIRST_LOOK_MS)
    const opsUrl = await ops.listen({ host: config.OPS_HOST, port: config.OPS_PORT })
    const url = await app.listen({ host: config.HOST, port: config.PORT, backlog: BACKLOG })
    return { url, opsUrl, close }
  } catch (error) {
    await release().catch(() => undefined)
    throw error
  }
}
