/** One gateway process: opens its connections, starts its listeners, and closes all in order. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@spillway/common/log'
import { RotatedSecret, rereadOnHangup } from '@spillway/common/secrets'
import { listOf } from '@spillway/common/settings'
import { Shutdown } from '@spillway/common/shutdown'
import { connectDatabase, connectionTo, databaseProblem, fillPool, poolUse } from '@spillway/prisma'
import { PasswordClient, parseKeyring, quitRedis, RedisWatch } from '@spillway/queue/client'
import { type ConnectionRole, connectRedis } from '@spillway/queue/redis/connect'
import { sameServerAs } from '@spillway/queue/redis/url'
import { QueueReporter } from '@spillway/queue/report'
import { Audit } from './audit/recorder.js'
import type { GatewayConfig } from './config.js'
import { Blocks } from './limits/blocks.js'
import { Guessing } from './limits/guessing.js'
import { toCountingRedis } from './limits/limits.js'
import { Mail } from './mail/mail.js'
import { parseSmtpUrl } from './mail/smtp.js'
import { exposeGatewayState } from './ops/gauges.js'
import { GatewayMetrics } from './ops/metrics.js'
import { NamedOperators } from './ops/named.js'
import { OverloadGuard } from './overload.js'
import { PasswordList } from './passwords/breached-list.js'
import { serviceEndpoints } from './passwords/service.js'
import { buildOpsPort, buildPublicApi, buildServiceApi, closeTimeMs, endpoints } from './servers.js'
import { optionalClaimNames, SigningKeys, TokenIssuer } from './sessions/access-tokens.js'
import { startDeletingExpiredSessions } from './sessions/expired-sessions.js'
import { type SessionOptions, Sessions } from './sessions/sessions.js'

/** How long to wait for the first state of the queue. Without it, requests get tickets. */
const FIRST_READING_MS = 500
const STEP_TIMEOUT_MS = 2_500
/** Connections to PostgreSQL for operators, opened when they are needed. */
const OPERATORS_POOL_SIZE = 2
/** The accept backlog, up to net.core.somaxconn. Node's 511 drops connections in a spike. */
const BACKLOG = 4_096
/** A mail that is not sent in this time is sent by another gateway, or after the next start. */
const MAIL_TIMEOUT_MS = 5_000

/** What a gateway opens for its servers. */
export interface Opened extends Awaited<ReturnType<typeof open>> {}

/** Opens what all servers use, even without PostgreSQL or Redis. */
async function open(
  config: GatewayConfig,
  env: NodeJS.ProcessEnv,
  log: Logger,
  paceMs: ((holdMs: number) => number) | undefined,
) {
  const keyring = parseKeyring(config.spillwaySealKeys)
  const keys = await SigningKeys.parse(config.spillwayJwtKeys)
  const { breachedPasswordsFile: listFile, opsOperatorsFile: operatorsFile } = config
  const breached = listFile === '' ? undefined : new PasswordList(listFile)
  const namedOperators = operatorsFile === '' ? undefined : new NamedOperators(operatorsFile, log)
  await namedOperators?.start()
  const current = (name: string, value: string, check: (url: string) => unknown) =>
    new RotatedSecret({ env, name, value, check, log }).current
  const currentRedisUrl = current('REDIS_URL', config.redisUrl, sameServerAs(config.redisUrl))
  const server = {
    url: config.databaseUrl,
    currentUrl: current('DATABASE_URL', config.databaseUrl, (url) => connectionTo(url)),
  }
  const database = connectDatabase({ ...server, poolSize: config.databasePoolSize })
  // Logins never wait for searches and exports of operators.
  const operatorsDatabase = connectDatabase({ ...server, poolSize: OPERATORS_POOL_SIZE, preparesStatements: false })
  // Opens connections before the first spike. Without PostgreSQL, they open when it is back.
  const { place } = connectionTo(config.databaseUrl)
  fillPool(database).catch((error: unknown) =>
    log.warn({ ...place, reason: databaseProblem(error) }, 'the database cannot be used'),
  )
  const watch = new RedisWatch(log)
  // Besides the client's two (commands, replies). .github/CONTRIBUTING.md gives the reason.
  const connect = (role: ConnectionRole, purpose: string) => {
    const connection = connectRedis(config.redisUrl, role, currentRedisUrl)
    watch.watch(connection, purpose)
    return connection
  }
  const operatorsRedis = connect('producer', 'operators')
  const mailRedis = config.smtpUrl === '' ? undefined : connect('consumer', 'mail')
  // With its type, because the type of endpoints follows from what is opened.
  const metrics: GatewayMetrics = new GatewayMetrics([...endpoints, ...serviceEndpoints].map(({ route }) => route.kind))
  const guard = new OverloadGuard()
  guard.start()
  const { otelExporterOtlpEndpoint: collector } = config
  const { Tracing } = collector === '' ? {} : await import('@spillway/common/tracing')
  const tracing = Tracing && new Tracing({ service: 'spillway-gateway', collector, log })
  const passwords = new PasswordClient({
    redisUrl: config.redisUrl,
    currentRedisUrl,
    prefix: config.queuePrefix,
    keyring,
    log,
    watch,
    mostWaiting: config.maxOutstanding,
    ...(tracing ? { telemetry: tracing.telemetry } : {}),
    observer: {
      resultReceived: (source) => metrics.results.inc({ source }),
      resultBroken: () => metrics.sealFailures.inc({ purpose: 'result' }),
    },
  })
  const reporter = new QueueReporter(operatorsRedis, config.queuePrefix)
  const audit = new Audit({ database, retentionDays: config.auditRetentionDays, metrics, log })
  metrics.exposeKeys([keyring, keys])
  rereadOnHangup(env, [keyring, keys], log)
  const countingRedis = toCountingRedis(passwords, log)
  const mail =
    mailRedis &&
    new Mail({
      config,
      redis: countingRedis,
      mailRedis,
      now: () => passwords.now(),
      watch,
      keyring,
      database,
      currentUrl: current('SMTP_URL', config.smtpUrl, parseSmtpUrl),
      metrics,
      log,
    })
  const post = mail?.post
  exposeGatewayState(metrics, { passwords, reporter, guard, config, post, audit, poolUse: () => poolUse(database) })
  const blocks = new Blocks(database, log)
  const expiredSessions = startDeletingExpiredSessions({ database, log })
  let draining = false
  const { sessionTtlS, sessionIdleS, refreshGraceS, loginNeedsConfirmation: needsConfirmedEmail } = config
  const ofSessions: SessionOptions = { sessionTtlS, sessionIdleS, refreshGraceS, needsConfirmedEmail }
  const sessions = new Sessions(database, keyring, ofSessions)
  const tokenClaims = optionalClaimNames.filter((name) => listOf(config.tokenClaims).includes(name))
  const accessTokens = { keys, issuer: config.issuer, audience: config.jwtAudience }
  const tokenIssuer = new TokenIssuer({ ...accessTokens, ttlS: config.accessTokenTtlS, claims: tokenClaims })
  return {
    isDraining: () => draining,
    drain() {
      draining = true
    },
    log,
    metrics,
    tracing,
    guard,
    paceMs,
    watch,
    passwords,
    reporter,
    countingRedis,
    /** For requests of operators: long reads must not delay logins. */
    operatorsRedis,
    database,
    operatorsDatabase,
    keyring,
    keys,
    accessTokens,
    tokenIssuer,
    tokenClaims,
    sessions,
    operatorsSessions: new Sessions(operatorsDatabase, keyring, ofSessions),
    expiredSessions,
    guessing: new Guessing({ config, redis: countingRedis, keyring, metrics, log, nowMs: () => passwords.now() }),
    blocks,
    audit,
    breached,
    namedOperators,
    /** Undefined if no mail is sent, as the next two. */
    mailRedis,
    mail,
    post,
  }
}

export type Gateway = Awaited<ReturnType<typeof startGateway>>

/**
 * Starts a gateway, even without PostgreSQL or Redis; /readyz then names what is missing. Secrets
 * in `env` are read again from their files. `paceMs` is how long refusals, and tickets that are
 * issued at once, are held [pacedMs].
 */
export async function startGateway(
  config: GatewayConfig,
  env: NodeJS.ProcessEnv,
  log: Logger,
  { paceMs }: { paceMs?(holdMs: number): number } = {},
) {
  const opened = await open(config, env, log, paceMs)
  const { database, operatorsDatabase, operatorsRedis, mailRedis, passwords, guard, mail, audit, blocks } = opened
  const { expiredSessions, tracing } = opened
  const app = await buildPublicApi(config, opened)
  const serviceApp = config.serviceKeys === '' ? undefined : await buildServiceApi(config, opened)
  const ops = await buildOpsPort(config, opened)

  /**
   * Drains for DRAIN_MS, or until interrupted: answers all requests, and ends each connection with
   * its answer. Then it stops listening, answers the running requests, and disconnects.
   */
  async function close(signal?: AbortSignal): Promise<void> {
    opened.drain()
    await sleep(config.drainMs, undefined, signal && { signal }).catch(() => undefined)
    await shutDown()
  }

  /** Runs all steps, even after failures. Rejects at the end if a step failed. */
  async function shutDown(): Promise<void> {
    const shutdown = new Shutdown('gateway', log)
    await shutdown.step('answer requests in hand', closeTimeMs(config) + STEP_TIMEOUT_MS, () =>
      Promise.all([app.close(), serviceApp?.close()]),
    )
    guard.close()
    await shutdown.step('stop sending mails', MAIL_TIMEOUT_MS, () => mail?.close())
    await shutdown.step('close the ops port', STEP_TIMEOUT_MS, () => ops.close())
    await shutdown.step('close the queue', STEP_TIMEOUT_MS, () => passwords.close())
    await shutdown.step('disconnect from Redis', STEP_TIMEOUT_MS, async () => {
      operatorsRedis.disconnect()
      if (mailRedis !== undefined) await quitRedis(mailRedis)
    })
    await shutdown.step('write the last audit events', STEP_TIMEOUT_MS, () => audit.close())
    await shutdown.step('stop reading blocked networks', STEP_TIMEOUT_MS, () => blocks.close())
    await shutdown.step('stop deleting expired sessions', STEP_TIMEOUT_MS, () => expiredSessions.close())
    await shutdown.step('disconnect from PostgreSQL', STEP_TIMEOUT_MS, () =>
      Promise.all([database.$disconnect(), operatorsDatabase.$disconnect()]),
    )
    await shutdown.step('flush traces', STEP_TIMEOUT_MS, () => tracing?.close())
    const error = shutdown.failure()
    if (error) throw error
  }

  try {
    // If the database is away, the blocks are read later.
    await Promise.all([passwords.estimates.whenKnown(FIRST_READING_MS), blocks.read().catch(() => undefined)])
    const opsUrl = await ops.listen({ host: config.opsHost, port: config.opsPort })
    const servicePlace = { host: config.serviceHost, port: config.servicePort, backlog: BACKLOG }
    const serviceUrl = await serviceApp?.listen(servicePlace)
    const url = await app.listen({ host: config.host, port: config.port, backlog: BACKLOG })
    /** Without SERVICE_KEYS, the service API has no URL. */
    return { url, opsUrl, serviceUrl, close }
  } catch (error) {
    await shutDown().catch(() => undefined)
    throw error
  }
}
