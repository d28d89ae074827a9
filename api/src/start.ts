/** One gateway process: opens its connections, starts its listeners, and closes all in order. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@spillway/common/log'
import { RotatedSecret, rereadOnHangup } from '@spillway/common/secrets'
import { listenAddress, listOf, tracesUrl } from '@spillway/common/settings'
import { Shutdown } from '@spillway/common/shutdown'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { connectDatabase, connectionTo, databaseProblem, placeOf, poolUse } from '@spillway/prisma'
import { ABSENT_SHARE } from '@spillway/queue/jobs/lanes'
import { QueueReporter } from '@spillway/queue/jobs/report'
import { createPasswordClient, parseKeyring, quitRedis, RedisWatch } from '@spillway/queue/queue-client'
import { type ConnectionRole, connectRedis } from '@spillway/queue/redis/connect'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { Admission } from '@spillway/queue/wait/admission'
import { Fallback } from '@spillway/worker/fallback'
import { Audit } from './audit/recorder.js'
import type { GatewayConfig } from './config.js'
import { Mail } from './mail/mail.js'
import { parseSmtpUrl } from './mail/smtp.js'
import { PasswordList } from './operations/breached-list.js'
import { serviceOperations } from './operations/service-passwords.js'
import { exposeGatewayState } from './operators/gauges.js'
import { NamedOperators } from './operators/named.js'
import { acceptorsPlugin, BACKLOG } from './plugins/acceptors.js'
import { Blocks } from './plugins/blocks.js'
import { toCountingRedis } from './plugins/counts.js'
import { LoadShedder } from './plugins/load-shedding/load-shedder.js'
import { GatewayMetrics } from './plugins/metrics.js'
import { buildOpsPort, buildPublicApi, buildServiceApi, closeTimeMs, type Opened, operations } from './servers.js'
import { optionalClaimNames, TokenIssuer } from './sessions/access-token.js'
import { startDeletingExpiredSessions } from './sessions/expired-sessions.js'
import { RefreshTokenTags } from './sessions/refresh-tokens.js'
import { SessionOpener } from './sessions/session-opening.js'
import { Sessions } from './sessions/sessions.js'
import { SigningKeys } from './sessions/signing-keys.js'

/** How long to wait for the first reading of the queue, without which requests get tickets. */
const FIRST_READING_MS = 500
const STEP_TIMEOUT_MS = 2_500
/** The fallback worker finishes its jobs within SHUTDOWN_GRACE_MS, or ends with this process. */
const FALLBACK_TIMEOUT_MS = 15_000
/** A mail that is not sent by then is sent by another gateway, or after the next start. */
const MAIL_TIMEOUT_MS = 5_000

export type Gateway = Awaited<ReturnType<typeof startGateway>>

/**
 * Starts a gateway, without PostgreSQL or Redis too; /readyz then names what is missing. Of `env`
 * secrets are read again from their files, and a fallback worker gets it. Without acceptors, one
 * connection is accepted in a turn.
 */
export async function startGateway(
  config: GatewayConfig,
  env: NodeJS.ProcessEnv,
  log: Logger,
  { acceptors = true } = {},
) {
  const keyring = parseKeyring(config.SPILLWAY_SEAL_KEYS)
  const keys = await SigningKeys.parse(config.SPILLWAY_JWT_KEYS)
  const { BREACHED_PASSWORDS_FILE: listFile, OPS_OPERATORS_FILE: operatorsFile } = config
  const breached = listFile === '' ? undefined : new PasswordList(listFile)
  const namedOperators = operatorsFile === '' ? undefined : new NamedOperators({ file: operatorsFile, log })
  await namedOperators?.start()
  const current = (name: 'DATABASE_URL' | 'REDIS_URL' | 'SMTP_URL', check: (url: string) => unknown) =>
    new RotatedSecret({ env, name, value: config[name], check, log }).current
  const currentRedisUrl = current('REDIS_URL', (urls) => parseRedisServers(urls))
  const databaseUnusable = new ThrottledWarning(log, 'the database cannot be used')
  const database = connectDatabase({
    ...{ url: config.DATABASE_URL, currentUrl: current('DATABASE_URL', (url) => connectionTo(url)) },
    ...{ poolSize: config.DATABASE_POOL_SIZE, keepsOpen: true },
    filled(failure) {
      if (failure === undefined) databaseUnusable.recovered()
      else databaseUnusable.warn(new Error(databaseProblem(failure)), { facts: placeOf(config.DATABASE_URL) })
    },
  })
  // Connections are open before the first spike; without PostgreSQL they open when it is back.
  await database.$connect()
  const watch = new RedisWatch(log)
  // Beside the client's two (commands, replies). .github/CONTRIBUTING.md says why they are separate.
  const connect = (role: ConnectionRole, purpose: string) =>
    parseRedisServers(config.REDIS_URL, currentRedisUrl).map(({ url, currentUrl, address }) => {
      const connection = connectRedis(url, role, currentUrl)
      watch.watch(connection, purpose)
      return { address, connection }
    })
  const operatorsRedis = connect('producer', 'operators')
  const mailRedis = config.SMTP_URL === '' ? [] : connect('consumer', 'mail')
  const metrics = new GatewayMetrics([...operations, ...serviceOperations].map(({ kind }) => kind))
  const shedder = new LoadShedder(config.DATABASE_POOL_SIZE)
  const url = tracesUrl(config)
  const { Tracing } = url === undefined ? {} : await import('@spillway/common/tracing')
  const tracing = Tracing && url ? new Tracing({ service: 'spillway-gateway', url, log }) : undefined
  const passwords = createPasswordClient({
    redisUrl: config.REDIS_URL,
    currentRedisUrl,
    prefix: config.QUEUE_PREFIX,
    keyring,
    jobLifeMs: config.TICKET_TTL_MS,
    log,
    watch,
    maxAbsent: Math.ceil(config.MAX_OUTSTANDING * ABSENT_SHARE),
    ...(tracing ? { telemetry: tracing.telemetry } : {}),
    observer: {
      verdictReceived: (source) => metrics.verdicts.inc({ source }),
      verdictBroken: () => metrics.sealFailures.inc({ purpose: 'verdict' }),
      jobAddedAgain: () => metrics.jobsAddedAgain.inc(),
      jobMoved: () => metrics.jobsMoved.inc(),
    },
  })
  const operatorsConnections = operatorsRedis.map(({ connection }) => connection)
  const reporter = new QueueReporter(operatorsConnections, config.QUEUE_PREFIX)
  const fallback = new Fallback({
    concurrency: config.LOCAL_FALLBACK_CONCURRENCY,
    env,
    lacksWorkers: () => passwords.load().known && passwords.load().workers === 0,
    log,
  })
  exposeGatewayState(metrics, {
    passwords,
    reporter,
    shedder,
    poolUse: () => poolUse(database),
    isFallingBack: () => fallback.active(),
  })
  metrics.exposeKeys([keyring, keys])
  rereadOnHangup(env, [keyring, keys], log, () => fallback.hangUp())
  const audit = new Audit({ database, retentionDays: config.AUDIT_RETENTION_DAYS, metrics, log })
  const countingRedis = toCountingRedis(passwords.redis, log)
  const mailDeps = { redis: countingRedis, mailRedis, watch, keyring, database, metrics, log }
  const currentUrl = current('SMTP_URL', parseSmtpUrl)
  const mail = config.SMTP_URL === '' ? undefined : new Mail(config, { ...mailDeps, currentUrl })
  const blocks = new Blocks(database, log)
  const expiredSessions = startDeletingExpiredSessions({ database, log })
  let draining = false
  const admission = new Admission({
    load: () => passwords.load(),
    predictedWaitMs: (lane) => passwords.predictedWaitMs(lane),
    maxOutstanding: config.MAX_OUTSTANDING,
    lifeMs: config.TICKET_TTL_MS,
  })
  const tags = new RefreshTokenTags(keyring)
  const rotation = { sessionIdleS: config.SESSION_IDLE_S, refreshGraceS: config.REFRESH_GRACE_S }
  const sessions = new Sessions(database, tags, rotation)
  const { SESSION_TTL_S: sessionTtlS, LOGIN_NEEDS_CONFIRMATION: needsConfirmedEmail } = config
  const sessionOpener = new SessionOpener(database, tags, { ...rotation, sessionTtlS, needsConfirmedEmail })
  const tokenClaims = optionalClaimNames.filter((name) => listOf(config.TOKEN_CLAIMS).includes(name))
  const accessTokens = { keys, issuer: config.ISSUER, audience: config.JWT_AUDIENCE }
  const tokenIssuer = new TokenIssuer({ ...accessTokens, ttlS: config.ACCESS_TOKEN_TTL_S, claims: tokenClaims })
  const opened: Opened = {
    ...{ isDraining: () => draining, metrics, shedder, tracing, log, watch },
    ...{ database, passwords, admission, keyring, countingRedis, operatorsRedis, reporter },
    ...{ keys, accessTokens, tokenIssuer, tokenClaims, sessions, sessionOpener },
    ...{ audit, blocks, post: mail?.post, breached, namedOperators },
  }
  const app = await buildPublicApi(config, opened)
  const serviceApp = config.SERVICE_KEYS === '' ? undefined : await buildServiceApi(config, opened)
  // After all routes: onClose hooks run in reverse order, and these connections must end first.
  if (acceptors) for (const each of [app, serviceApp]) await each?.register(acceptorsPlugin, { backlog: BACKLOG })
  const ops = await buildOpsPort(config, opened)

  /**
   * Drains for DRAIN_MS, or until interrupted: answers everything, and ends each connection with
   * its answer. Then stops listening, answers the running requests, and disconnects.
   */
  async function close(signal?: AbortSignal): Promise<void> {
    draining = true
    await sleep(config.DRAIN_MS, undefined, signal && { signal }).catch(() => undefined)
    await shutDown()
  }

  /** Runs every step, even after failures. Rejects at the end if any step failed. */
  async function shutDown(): Promise<void> {
    const shutdown = new Shutdown('gateway', log)
    await shutdown.step('answer requests in hand', closeTimeMs(config) + STEP_TIMEOUT_MS, () =>
      Promise.all([app.close(), serviceApp?.close()]),
    )
    await shutdown.step('stop the fallback worker', FALLBACK_TIMEOUT_MS, () => fallback.close())
    await shutdown.step('stop sending mails', MAIL_TIMEOUT_MS, () => mail?.close())
    await shutdown.step('close the ops port', STEP_TIMEOUT_MS, () => ops.close())
    await shutdown.step('close the queue', STEP_TIMEOUT_MS, () => passwords.close())
    await shutdown.step('disconnect from Redis', STEP_TIMEOUT_MS, async () => {
      for (const { connection } of operatorsRedis) connection.disconnect()
      await Promise.all(mailRedis.map(({ connection }) => quitRedis(connection)))
    })
    await shutdown.step('write the last audit events', STEP_TIMEOUT_MS, () => audit.close())
    await shutdown.step('stop reading blocked networks', STEP_TIMEOUT_MS, () => blocks.close())
    await shutdown.step('stop deleting expired sessions', STEP_TIMEOUT_MS, () => expiredSessions.close())
    await shutdown.step('disconnect from PostgreSQL', STEP_TIMEOUT_MS, () => database.$disconnect())
    await shutdown.step('flush traces', STEP_TIMEOUT_MS, () => tracing?.close())
    const error = shutdown.failure()
    if (error) throw error
  }

  try {
    // Without the database, at its first reading.
    await Promise.all([passwords.whenKnown(FIRST_READING_MS), blocks.read().catch(() => undefined)])
    const opsUrl = await ops.listen({ host: listenAddress(config.OPS_HOST), port: config.OPS_PORT })
    const servicePlace = { host: listenAddress(config.SERVICE_HOST), port: config.SERVICE_PORT, backlog: BACKLOG }
    const serviceUrl = await serviceApp?.listen(servicePlace)
    const url = await app.listen({ host: listenAddress(config.HOST), port: config.PORT, backlog: BACKLOG })
    /** The service API has no URL without SERVICE_KEYS. */
    return { url, opsUrl, serviceUrl, close }
  } catch (error) {
    await shutDown().catch(() => undefined)
    throw error
  }
}
