/** The public application of a gateway: builds its services and registers plugins and routes, in an order that matters. */
import { randomUUID } from 'node:crypto'
import type { Keyring, PasswordClient, RedisConnection } from '@spillway/client/queue-client'
import type { Database } from '@spillway/prisma'
import type { Tracing } from '@spillway/worker/tracing'
import { type FastifyBaseLogger, type FastifyInstance, fastify } from 'fastify'
import { type GatewayConfig, listOf } from './config.js'
import { acceptorsPlugin } from './http/acceptors.js'
import { clientGonePlugin } from './http/client-gone.js'
import { docsPlugin } from './http/docs.js'
import { drainPlugin } from './http/drain.js'
import { jsonBodyPlugin } from './http/json-body.js'
import { messageRulesPlugin } from './http/message-rules.js'
import type { GatewayMetrics } from './http/metrics.js'
import { requestLogPlugin } from './http/request-log.js'
import { requestMetricsPlugin } from './http/request-metrics.js'
import { serverOptions } from './http/server-options.js'
import { limitsPlugin } from './limits/limits.js'
import type { LoadShedder } from './load-shedding/load-shedder.js'
import { loadSheddingPlugin } from './load-shedding/plugin.js'
import { operations, resumeOperation } from './operations/list.js'
import { createPasswordCheck } from './operations/new-password.js'
import type { OperationDeps } from './operations/operation.js'
import { answerHeadersPlugin } from './problems/answer-headers.js'
import { problemPlugin, sendConnectionProblem } from './problems/plugin.js'
import type { RouteDeps } from './routes/deps.js'
import { healthRoutes } from './routes/health.js'
import { keysRoutes } from './routes/keys.js'
import { meRoutes } from './routes/me.js'
import { ticketRoutes } from './routes/tickets.js'
import { tokenRoutes } from './routes/tokens.js'
import { formats } from './schemas/credentials.js'
import { accessTokenPlugin, createTokenIssuer } from './sessions/access-token.js'
import { sessionNameOf } from './sessions/refresh-tokens.js'
import { createSessions } from './sessions/sessions.js'
import type { SigningKeys } from './sessions/signing-keys.js'
import { createAdmission } from './waiting/admission.js'
import { createHold } from './waiting/hold.js'
import { createTickets } from './waiting/tickets.js'

/** The largest valid body changes a password: two passwords of 1,024 bytes, escaped. */
const BODY_LIMIT_BYTES = 16 * 1_024

/**
 * The accept backlog: connections that the system keeps until they are accepted, as far as net.core.somaxconn allows. Node's 511 are
 * too few in a spike: further connections are dropped, and clients retry after 1, 3 and 7 s.
 */
export const BACKLOG = 4_096

/** Time for the queries before and after a request's wait. */
const CLOSE_MARGIN_MS = 5_000

/** The longest time that closing takes, in milliseconds: then requests whose bodies have not arrived are cut off. */
export function closeTimeMs({ LOGIN_WAIT_MS }: GatewayConfig): number {
  return LOGIN_WAIT_MS + CLOSE_MARGIN_MS
}

export interface GatewayDeps {
  database: Database
  passwords: PasswordClient
  keyring: Keyring
  keys: SigningKeys
  redis: RedisConnection
  metrics: GatewayMetrics
  shedder: LoadShedder
  /** Undefined when traces are not exported. */
  tracing?: Tracing | undefined
  log: FastifyBaseLogger
  /** Whether this gateway is about to stop: it still answers, but /readyz fails. */
  isDraining(): boolean
}

/** Builds the public application. Dependencies stay the caller's to close. */
export async function buildApp(config: GatewayConfig, deps: GatewayDeps): Promise<FastifyInstance> {
  const { database, passwords, keyring, keys, redis, metrics, shedder, tracing, log } = deps
  const proxies = listOf(config.TRUST_PROXY)
  const app: FastifyInstance = fastify({
    ...serverOptions({ log, requestTimeoutMs: config.REQUEST_TIMEOUT_MS }),
    genReqId: () => randomUUID(),
    bodyLimit: BODY_LIMIT_BYTES,
    trustProxy: proxies.length > 0 && proxies,
    // While it closes, a gateway still answers requests on open connections, and closes each connection with its answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // The client would mistake this answer for that of an earlier request.
    clientErrorHandler: (error, socket) =>
      app.owesAnswer(socket) ? socket.destroy() : sendConnectionProblem(error, socket),
    ajv: { customOptions: { allErrors: true, coerceTypes: false, removeAdditional: false, formats } },
  })

  // First: every later plugin relies on connections being tracked.
  await app.register(clientGonePlugin)
  await app.register(drainPlugin, { graceMs: closeTimeMs(config) })
  if (tracing !== undefined) await app.register(import('./http/request-trace.js'))
  await app.register(requestLogPlugin)
  await app.register(requestMetricsPlugin, { metrics })
  await app.register(answerHeadersPlugin)
  await app.register(messageRulesPlugin)
  await app.register(loadSheddingPlugin, { shedder, metrics, bodyLimitBytes: BODY_LIMIT_BYTES })
  await app.register(problemPlugin)
  await app.register(jsonBodyPlugin)
  await app.register(docsPlugin)
  await app.register(accessTokenPlugin, {
    keys,
    issuer: config.JWT_ISSUER,
    audience: config.JWT_AUDIENCE,
    ttlS: config.ACCESS_TOKEN_TTL_S,
  })
  await app.register(limitsPlugin, {
    redis,
    queuePrefix: config.QUEUE_PREFIX,
    perAddress: config.LIMIT_PER_ADDRESS,
    perAccount: config.LIMIT_PER_ACCOUNT,
    refreshPerAddress: config.LIMIT_REFRESH_PER_ADDRESS,
    refreshPerSession: config.LIMIT_REFRESH_PER_SESSION,
    redeemPerAddress: config.LIMIT_REDEEM_PER_ADDRESS,
    sessionNameOf,
  })

  const issueTokens = createTokenIssuer(app, { accessTokenTtlS: config.ACCESS_TOKEN_TTL_S })
  const sessions = createSessions(database, {
    sessionTtlS: config.SESSION_TTL_S,
    refreshGraceS: config.REFRESH_GRACE_S,
  })
  const checkPassword = createPasswordCheck({ minLength: config.PASSWORD_MIN_LENGTH, service: config.JWT_ISSUER })
  const operationDeps: OperationDeps = { database, sessions, issueTokens, checkPassword }
  const admission = createAdmission(passwords, {
    ticketTtlMs: config.TICKET_TTL_MS,
    maxOutstanding: config.MAX_OUTSTANDING,
  })
  const hold = createHold({
    passwords,
    tickets: createTickets(keyring),
    admission,
    resume: (operation) => resumeOperation(operationDeps, operation),
    metrics,
    waitLimitMs: config.LOGIN_WAIT_MS,
    ticketTtlMs: config.TICKET_TTL_MS,
  })

  const routes: RouteDeps = {
    database,
    passwords,
    isDraining: deps.isDraining,
    hold,
    sessions,
    issueTokens,
    jwks: keys.jwks,
  }
  await app.register(healthRoutes, routes)
  for (const operation of operations) operation.mount(app, { ...operationDeps, hold })
  await app.register(ticketRoutes, routes)
  await app.register(tokenRoutes, routes)
  await app.register(meRoutes, routes)
  await app.register(keysRoutes, routes)
  // Last: onClose hooks run in reverse order, and its connections must end before anything else is closed.
  await app.register(acceptorsPlugin, { backlog: BACKLOG })
  return app
}
