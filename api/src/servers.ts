/** The three servers of a gateway, built from plugins. start.ts opens and closes the rest. */
import type { EventEmitter } from 'node:events'
import { listOf } from '@spillway/common/settings'
import { newId } from '@spillway/queue/wire/id'
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import { meRoutes } from './accounts/me.js'
import { auditRefusalsPlugin } from './audit/recorder.js'
import type { GatewayConfig } from './config.js'
import { clientGonePlugin, drainPlugin, stalledConnectionsPlugin } from './http/connections.js'
import { CrossOrigin, crossOriginPlugin } from './http/cross-origin.js'
import { type DocsOptions, docsPlugin, publicDocs, serviceDocs } from './http/docs.js'
import { toApiError } from './http/errors.js'
import { healthRoutes } from './http/health.js'
import { jsonBodyPlugin, messageRulesPlugin } from './http/message-rules.js'
import {
  answerHeadersPlugin,
  connectionProblem,
  problemPlugin,
  sendConnectionProblem,
  sendProblem,
} from './http/problems.js'
import { requestIdPlugin } from './http/request-id.js'
import { noteUnrouted, requestLogPlugin } from './http/request-log.js'
import { ownSchemas, serverOptions } from './http/server-options.js'
import { Attempts } from './limits/attempts.js'
import { blocksPlugin } from './limits/blocks.js'
import { DeviceTokens } from './limits/device-token.js'
import { Guessing } from './limits/guessing.js'
import { createLimits, rateLimit } from './limits/limits.js'
import { mailRoutes } from './mail/routes.js'
import type { GatewayMetrics } from './ops/metrics.js'
import { operatorPagesPlugin, withoutBase } from './ops/pages.js'
import { OperatorReads } from './ops/reads.js'
import { overloadPlugin } from './overload/plugin.js'
import type { Deps, Opened } from './passwords/deps.js'
import type { Endpoint } from './passwords/endpoint.js'
import { Flow, type FlowEvents } from './passwords/flow.js'
import { HashUpgrades } from './passwords/hash-upgrades.js'
import { Credentials, login } from './passwords/login.js'
import { NewPasswords } from './passwords/new-password.js'
import { changeEmail, changePassword, deleteAccount, verifyPassword } from './passwords/own-account.js'
import { register } from './passwords/register.js'
import { resetPassword } from './passwords/reset-password.js'
import { requireKeyOf, serviceEndpoints } from './passwords/service.js'
import { ticketRoutes } from './passwords/tickets.js'
import { formats } from './schemas/credentials.js'
import { accessTokenPlugin } from './sessions/access-token.js'
import { discoveryRoutes } from './sessions/discovery.js'
import { introspectionRoute, tokenToIntrospect } from './sessions/introspect.js'
import { sessionNameOf } from './sessions/refresh-tokens.js'
import { inBodies, inCookies, ownPagesPlugin } from './sessions/token-carrier.js'
import { tokenRoutes } from './sessions/tokens.js'

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

export async function buildPublicApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const { database, passwords, countingRedis: redis, keyring, audit, metrics, log } = opened
  const nowMs = () => passwords.now()
  const devices = new DeviceTokens(keyring, { ttlS: config.deviceTtlS, nowMs })
  const origins = listOf(config.corsOrigins)
  const crossOrigin = origins.length === 0 ? undefined : new CrossOrigin(origins, config.sessionCookie)
  const app = await newApi(config, opened, { bodyLimitBytes: PUBLIC_BODY_BYTES, docs: publicDocs, crossOrigin })
  await app.register(blocksPlugin, opened)
  if (config.sessionCookie) await app.register(ownPagesPlugin, { origins, issuer: config.issuer })
  const lives = { sessionS: Math.min(config.sessionIdleS, config.sessionTtlS), deviceS: config.deviceTtlS }
  const tokenCarrier = config.sessionCookie ? inCookies(lives) : inBodies
  await app.register(accessTokenPlugin, opened.accessTokens)
  const attempts = new Attempts(config, redis, keyring)
  const limits = createLimits({
    config,
    attempts,
    redis,
    keyring,
    sessionNameOf: (request) => sessionNameOf(tokenCarrier.shownBy(request)),
  })
  await app.register(auditRefusalsPlugin, { audit })

  const { issuer, loginNeedsConfirmation: needsConfirmedEmail } = config
  const upgrades = new HashUpgrades({ passwords, database, mode: config.rehash, log })
  app.addHook('onClose', () => upgrades.close())
  const deps: Deps = {
    ...opened,
    issuer,
    upgrades,
    guessing: new Guessing({ config, devices, attempts, metrics, log }),
    limits,
    isRegistrationOpen: config.registration === 'open',
    tokenCarrier,
    newPasswords: new NewPasswords({
      minLength: config.passwordMinLength,
      service: URL.canParse(issuer) ? new URL(issuer).hostname : issuer,
      breached: opened.breached,
    }),
    credentials: new Credentials(database, { needsConfirmedEmail }),
  }
  const flow = new Flow({
    ...flowOptions(config, opened),
    deps,
    endpoints,
    guessing: deps.guessing,
    limitRedemption: limits.redeemNetwork,
  })
  countFlow(flow.events, metrics)

  await app.register(healthRoutes, deps)
  flow.mount(app)
  await app.register(ticketRoutes, { flow, passwords, bodyLimitBytes: PUBLIC_BODY_BYTES })
  for (const routes of [tokenRoutes, meRoutes, mailRoutes, discoveryRoutes]) await app.register(routes, deps)
  return app
}

/** The service API, on its own listener, for applications that keep their own users. */
export async function buildServiceApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const { passwords, sessions } = opened
  const app = await newApi(config, opened, { bodyLimitBytes: SERVICE_BODY_BYTES, docs: serviceDocs })
  app.decorateRequest('service')
  const { limitPerService: max, queuePrefix } = config
  const limitOf = (kind: string) => {
    const nameOf = ({ service }: FastifyRequest) => `${kind}:${service}`
    return rateLimit(opened.countingRedis, queuePrefix, { max, reason: 'service_limit', nameOf, headers: 'always' })
  }
  const deps = { requireServiceKey: requireKeyOf(config.serviceKeys), limitService: limitOf('service') }
  await app.register(accessTokenPlugin, { ...opened.accessTokens, tokenOf: tokenToIntrospect })
  await app.register(introspectionRoute, { ...deps, sessions })
  const flow = new Flow({
    ...flowOptions(config, opened),
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
  const byKey = { onRequest: deps.requireServiceKey, security: [{ serviceKey: [] }] }
  await app.register(ticketRoutes, { flow, passwords, bodyLimitBytes: SERVICE_BODY_BYTES, ...byKey })
  return app
}

function flowOptions(config: GatewayConfig, { passwords, database, keyring, log, paceMs }: Opened) {
  const { loginWaitMs: holdMs, ticketTtlMs: ticketLifeMs } = config
  return { passwords, database, keyring, log, paceMs, holdMs, ticketLifeMs }
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
  await app.register(operatorPagesPlugin, { ...opened, config, reads: new OperatorReads(opened.audit) })
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
  // This goes first, because every later plugin needs the tracking of connections.
  await watchConnections(app, config, { graceMs: closeTimeMs(config), isDraining })
  if (tracing !== undefined) await app.register(import('./http/request-trace.js'))
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
