/** The three servers of a gateway, built from plugins. start.ts opens and closes the rest. */
import type { EventEmitter } from 'node:events'
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import { listOf } from '@spillway/common/settings'
import { newId } from '@spillway/queue/wire/id'
import {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyRequest,
  fastify,
  LogController,
  type RawServerDefault,
} from 'fastify'
import { meRoutes } from './accounts/me.js'
import { auditRefusalsPlugin } from './audit/recorder.js'
import type { GatewayConfig } from './config.js'
import { drainPlugin, stalledConnectionsPlugin } from './http/connections.js'
import { CrossOrigin, crossOriginPlugin } from './http/cross-origin.js'
import { type DocsOptions, docsPlugin, publicDocs, serviceDocs } from './http/docs.js'
import { healthRoutes } from './http/health.js'
import { jsonBodyPlugin, messageRulesPlugin } from './http/message-rules.js'
import {
  answerHeadersPlugin,
  connectionProblem,
  problemPlugin,
  sendConnectionProblem,
  sendProblem,
  toApiError,
} from './http/problems.js'
import {
  AddressRanges,
  clientGonePlugin,
  noteUnrouted,
  requestIdPlugin,
  requestIds,
  requestLogPlugin,
  requestTracePlugin,
} from './http/requests.js'
import { blocksPlugin } from './limits/blocks.js'
import { createLimits, rateLimit } from './limits/limits.js'
import { mailRoutes } from './mail/routes.js'
import type { GatewayMetrics } from './ops/metrics.js'
import { operatorPagesPlugin, withoutBase } from './ops/pages.js'
import { OperatorReads } from './ops/reads.js'
import { overloadPlugin } from './overload.js'
import type { Endpoint } from './passwords/endpoint.js'
import { Flow, type FlowEvents } from './passwords/flow.js'
import { Credentials, HashUpgrades, login } from './passwords/login.js'
import { NewPasswords } from './passwords/new-password.js'
import { changeEmail, changePassword, deleteAccount, verifyPassword } from './passwords/own-account.js'
import { register } from './passwords/register.js'
import { resetPassword } from './passwords/reset-password.js'
import { requireKeyOf, serviceEndpoints } from './passwords/service.js'
import { ticketRoutes } from './passwords/tickets.js'
import { formats } from './schemas/credentials.js'
import { accessTokenPlugin } from './sessions/access-tokens.js'
import { discoveryRoutes } from './sessions/discovery.js'
import { introspectionRoute, tokenToIntrospect } from './sessions/introspect.js'
import { sessionNameOf } from './sessions/sessions.js'
import { inBodies, inCookies, ownPagesPlugin, tokenRoutes } from './sessions/token-carrier.js'
import type { Opened } from './start.js'

/** The largest valid body changes a password: two passwords of 1,024 bytes, escaped. */
const PUBLIC_BODY_BYTES = 16 * 1_024
/** The largest password and stored hash, escaped. */
const SERVICE_BODY_BYTES = 32 * 1_024
/** How long running requests of the ops port may take when it closes, in milliseconds. */
const OPS_CLOSE_MS = 1_000
/** The time that a request needs in addition to its hold, in milliseconds. */
const CLOSE_MARGIN_MS = 5_000

/** The endpoints with a password job. Routes, metrics labels and OpenAPI use this list. */
export const endpoints: readonly Endpoint<Deps>[] = [
  ...[register, login, changePassword, resetPassword],
  ...[changeEmail, verifyPassword, deleteAccount],
]

/** The longest time that closing takes, in milliseconds. After it, late bodies are cut off. */
export function closeTimeMs({ loginWaitMs }: GatewayConfig): number {
  return loginWaitMs + CLOSE_MARGIN_MS
}

/** What endpoints and routes of the public API use, in addition to what is opened for all servers. */
function forPublicApi(config: GatewayConfig, opened: Opened) {
  const { database, passwords, countingRedis: redis, guessing, keyring, breached, log } = opened
  const { issuer, loginNeedsConfirmation: needsConfirmedEmail } = config
  const lives = { sessionS: Math.min(config.sessionIdleS, config.sessionTtlS), deviceS: config.deviceTtlS }
  const tokenCarrier = config.sessionCookie ? inCookies(lives) : inBodies
  return {
    issuer,
    tokenCarrier,
    isRegistrationOpen: config.registration === 'open',
    credentials: new Credentials(database, { needsConfirmedEmail }),
    upgrades: new HashUpgrades({ passwords, database, mode: config.rehash, log }),
    newPasswords: new NewPasswords({
      minLength: config.passwordMinLength,
      service: URL.canParse(issuer) ? new URL(issuer).hostname : issuer,
      breached,
    }),
    limits: createLimits({
      config,
      guessing,
      redis,
      keyring,
      sessionNameOf: (request) => sessionNameOf(tokenCarrier.shownBy(request)),
    }),
  }
}
export interface Deps extends Opened, ReturnType<typeof forPublicApi> {}

/** A plugin with routes. Types of requests and responses come from their JSON schemas. */
export type RoutePlugin = FastifyPluginAsyncJsonSchemaToTs<{ Options: Deps }>

export async function buildPublicApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const deps: Deps = { ...opened, ...forPublicApi(config, opened) }
  const { passwords, upgrades, limits } = deps
  const origins = listOf(config.corsOrigins)
  const crossOrigin = origins.length === 0 ? undefined : new CrossOrigin(origins, config.sessionCookie)
  const app = await newApi(config, opened, { bodyLimitBytes: PUBLIC_BODY_BYTES, docs: publicDocs, crossOrigin })
  await app.register(blocksPlugin, opened)
  if (config.sessionCookie) await app.register(ownPagesPlugin, { origins, issuer: config.issuer })
  await app.register(accessTokenPlugin, opened.accessTokens)
  await app.register(auditRefusalsPlugin, opened)
  app.addHook('onClose', () => upgrades.close())
  const flow = new Flow({ config, deps, endpoints, limitRedemption: limits.redeemNetwork })
  countFlow(flow.events, opened.metrics)

  await app.register(healthRoutes, deps)
  flow.mount(app)
  await app.register(ticketRoutes, { flow, passwords, bodyLimitBytes: PUBLIC_BODY_BYTES })
  for (const routes of [tokenRoutes, meRoutes, mailRoutes, discoveryRoutes]) await app.register(routes, deps)
  return app
}

/** The service API, on its own listener, for applications that keep their own users. */
export async function buildServiceApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const { passwords } = opened
  const app = await newApi(config, opened, { bodyLimitBytes: SERVICE_BODY_BYTES, docs: serviceDocs })
  app.decorateRequest('service')
  const { limitPerService: max, queuePrefix } = config
  const limitOf = (kind: string) => {
    const nameOf = ({ service }: FastifyRequest) => `${kind}:${service}`
    return rateLimit(opened.countingRedis, queuePrefix, { max, reason: 'service_limit', nameOf, headers: 'always' })
  }
  const requireServiceKey = requireKeyOf(config.serviceKeys)
  const deps = { ...opened, requireServiceKey, limitService: limitOf('service') }
  await app.register(accessTokenPlugin, { ...opened.accessTokens, tokenOf: tokenToIntrospect })
  await app.register(introspectionRoute, deps)
  const flow = new Flow({
    config,
    deps,
    endpoints: serviceEndpoints,
    // Counted separately, because new requests must not use up the redemptions of their tickets.
    limitRedemption: limitOf('service-redeem'),
    // Only the service that got a ticket may redeem it.
    isOwn: (remembered, { service }) =>
      service !== undefined && 'service' in remembered && remembered.service === service,
  })
  countFlow(flow.events, opened.metrics)
  flow.mount(app)
  const byKey = { onRequest: requireServiceKey, security: [{ serviceKey: [] }] }
  await app.register(ticketRoutes, { flow, passwords, bodyLimitBytes: SERVICE_BODY_BYTES, ...byKey })
  return app
}

/** Metrics listen to flows, which know nothing of them. */
function countFlow(events: EventEmitter<FlowEvents>, { jobsAdded, cancelled, hold }: GatewayMetrics): void {
  events.on('added', (place) => jobsAdded.inc({ place }))
  events.on('removed', () => cancelled.inc())
  events.on('held', ({ kind, outcome, ms }) => hold.observe({ endpoint: kind, outcome }, ms / 1_000))
}

/** Metrics for Prometheus and pages for operators. The other two listeners serve neither. */
export async function buildOpsPort(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const app: FastifyInstance = fastify({
    ...serverOptions(config, opened.log),
    // A HEAD of an export would read everything for nobody.
    exposeHeadRoutes: false,
    rewriteUrl: ({ url = '/' }) => withoutBase(url, config.opsBasePath),
    // Removing a mistyped parameter would show more than the operator asked for.
    ajv: { customOptions: { ...ownSchemas, formats, coerceTypes: false, removeAdditional: false } },
  })
  await watchConnections(app, config, { graceMs: OPS_CLOSE_MS, isDraining: opened.isDraining })
  await app.register(problemPlugin)
  await app.register(messageRulesPlugin)
  await app.register(jsonBodyPlugin)
  await app.register(operatorPagesPlugin, {
    ...opened,
    config,
    database: opened.operatorsDatabase,
    sessions: opened.operatorsSessions,
    reads: new OperatorReads(opened.audit),
  })
  return app
}

interface ApiOptions {
  bodyLimitBytes: number
  docs: DocsOptions
  /** Undefined if the API is closed to other origins. */
  crossOrigin?: CrossOrigin | undefined
}

/** A server with the plugins that the public API and the service API share. Their order matters. */
async function newApi(config: GatewayConfig, opened: Opened, options: ApiOptions): Promise<FastifyInstance> {
  const { log, metrics, guard, paceMs, passwords, tracing, isDraining } = opened
  const { bodyLimitBytes, docs, crossOrigin } = options
  const app: FastifyInstance = fastify({
    ...serverOptions(config, log),
    bodyLimit: bodyLimitBytes,
    // Fastify runs no hooks for these two handlers.
    clientErrorHandler({ code }, socket) {
      const requests = app.requestsOn(socket)
      // The client would mistake this answer for the answer to an earlier request.
      if (requests.some(({ raw }) => raw.complete) || !socket.writable) return void socket.destroy()
      // Further bytes on the connection would be an error again.
      socket.pause()
      const error = connectionProblem(code)
      // An interrupted request is logged when its connection ends; an unused connection is not.
      const isNoted = requests.length === 0 && socket.bytesRead > 0
      const requestId = newId()
      if (isNoted) noteUnrouted(error, { log: log.child({ requestId }), metrics })
      sendConnectionProblem(error, socket, { requestId, further: crossOrigin?.lastHeadersOn(socket) })
    },
    frameworkErrors(thrown, request, reply) {
      const error = toApiError(thrown)
      noteUnrouted(error, { log: request.log, metrics, method: request.method })
      reply.headers(crossOrigin?.headersFor(request.raw) ?? {})
      sendProblem(error, request, reply)
    },
    ajv: {
      customOptions: {
        ...{ ...ownSchemas, formats, allErrors: true, coerceTypes: false, removeAdditional: false },
        discriminator: true,
      },
    },
  })
  await watchConnections(app, config, { graceMs: closeTimeMs(config), isDraining })
  if (tracing !== undefined) await app.register(requestTracePlugin)
  await app.register(requestLogPlugin, { metrics })
  await app.register(answerHeadersPlugin)
  if (crossOrigin !== undefined) await app.register(crossOriginPlugin, { crossOrigin })
  const jobsPerSecond = () => passwords.estimates.load().jobsPerSecond
  await app.register(overloadPlugin, { guard, holdMs: config.loginWaitMs, paceMs, jobsPerSecond, isDraining })
  await app.register(messageRulesPlugin)
  await app.register(problemPlugin)
  await app.register(jsonBodyPlugin)
  await app.register(docsPlugin, docs)
  app.get('/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('docs'))
  return app
}

async function watchConnections(
  app: FastifyInstance,
  { requestTimeoutMs: stalledMs }: GatewayConfig,
  drain: { graceMs: number; isDraining(): boolean },
): Promise<void> {
  await app.register(requestIdPlugin)
  await app.register(clientGonePlugin)
  await app.register(drainPlugin, drain)
  await app.register(stalledConnectionsPlugin, { stalledMs })
}

// Options of all listeners.

/** How often Node looks for overdue requests, which get 408. Its 30 s would double the limit. */
const TIMEOUT_CHECK_MS = 1_000

/** The most requests on a connection. It is closed with its last answer. */
const REQUESTS_PER_CONNECTION = 1_000

/** Options of Ajv: our own schemas need no validation. Unknown keywords still throw. */
const ownSchemas = { meta: false, validateSchema: false }

function serverOptions(
  { requestTimeoutMs, keepAliveS, trustProxy }: GatewayConfig,
  log: FastifyBaseLogger,
): FastifyHttpOptions<RawServerDefault> {
  const trustedProxies = listOf(trustProxy)
  const proxies = new AddressRanges(trustedProxies)
  return {
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: requestIds(proxies),
    // A starved machine may take longer than Fastify's ten seconds to load a plugin.
    pluginTimeout: 0,
    // Bounds how many requests a client can pipeline. Other clients open a new connection.
    maxRequestsPerSocket: REQUESTS_PER_CONNECTION,
    // From the first byte, or the opening of a connection, to the last byte of the body.
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveS * 1_000,
    // Fastify would not trust an entry `address:port` of X-Forwarded-For.
    trustProxy: trustedProxies.length > 0 && ((address) => proxies.has(address)),
    clientErrorHandler: ({ code }, socket) => sendConnectionProblem(connectionProblem(code), socket),
    frameworkErrors: (error, request, reply) => sendProblem(toApiError(error), request, reply),
    // A closing gateway answers requests on open connections, and ends each with its answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Fastify passes on only requestTimeout. Node's 60 s for headers would stay in force.
    http: {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // See http/message-rules.ts.
      requireHostHeader: false,
    },
  }
}
