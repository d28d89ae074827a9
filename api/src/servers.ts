/** The three servers of a gateway, built from plugins, of what start.ts opens and closes. */
import type { Logger } from '@spillway/common/log'
import { limitPipelining } from '@spillway/common/pipeline-limit'
import { listOf } from '@spillway/common/settings'
import type { Tracing } from '@spillway/common/tracing'
import type { Keyring } from '@spillway/queue/queue-client'
import type { Admission } from '@spillway/queue/wait/admission'
import { newId } from '@spillway/queue/wire/id'
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import { auditRateLimitsPlugin } from './audit/recorder.js'
import type { GatewayConfig } from './config.js'
import type { PasswordList } from './operations/breached-list.js'
import { Conductor } from './operations/conductor.js'
import { Credentials } from './operations/credentials.js'
import { HashUpgrades } from './operations/hash-upgrades.js'
import { LineDocument } from './operations/line-document.js'
import { login } from './operations/login.js'
import { NewPasswords } from './operations/new-password.js'
import type { Operation } from './operations/operation.js'
import { changeEmail, changePassword, deleteAccount, verifyPassword } from './operations/own-account.js'
import type { Deps } from './operations/public-operation.js'
import { register } from './operations/register.js'
import { resetPassword } from './operations/reset-password.js'
import { serviceOperations } from './operations/service-passwords.js'
import { type OperatorPagesOptions, operatorPagesPlugin, withoutBase } from './operators/pages.js'
import { blocksPlugin } from './plugins/blocks.js'
import { clientGonePlugin, drainPlugin, stalledConnectionsPlugin } from './plugins/connections.js'
import type { CountingRedis } from './plugins/counts.js'
import { crossOriginPlugin } from './plugins/cross-origin.js'
import { type DocsOptions, docsPlugin, publicDocs, serviceDocs } from './plugins/docs.js'
import { toApiError } from './plugins/errors.js'
import { DeviceTokens, deviceTokenOf } from './plugins/guessing/device-token.js'
import { Failures } from './plugins/guessing/failures.js'
import { guessingPlugin } from './plugins/guessing/plugin.js'
import { type LimitRequest, limitsPlugin, RateLimit } from './plugins/limits.js'
import type { LoadShedder } from './plugins/load-shedding/load-shedder.js'
import { loadSheddingPlugin } from './plugins/load-shedding/plugin.js'
import type { DeviceOf } from './plugins/load-shedding/preference.js'
import { jsonBodyPlugin, messageRulesPlugin } from './plugins/message-rules.js'
import {
  answerHeadersPlugin,
  connectionProblem,
  problemPlugin,
  sendConnectionProblem,
  sendProblem,
} from './plugins/problems.js'
import { requestIdPlugin } from './plugins/request-id.js'
import { noteUnrouted, requestLogPlugin } from './plugins/request-log.js'
import { ownSchemas, serverOptions } from './plugins/server-options.js'
import { serviceKeysPlugin } from './plugins/service-keys.js'
import { discoveryRoutes } from './routes/discovery.js'
import { healthRoutes } from './routes/health.js'
import { introspectionRoute, tokenToIntrospect } from './routes/introspect.js'
import { mailRoutes } from './routes/mail.js'
import { meRoutes, sessionRoutes } from './routes/sessions.js'
import { lineRoutes, ticketRoutes } from './routes/tickets.js'
import { tokenRoutes } from './routes/tokens.js'
import { formats } from './schemas/credentials.js'
import { type AccessTokenOptions, accessTokenPlugin } from './sessions/access-token.js'
import { rememberDeletedAddresses } from './sessions/deleted-addresses.js'
import { sessionNameOf } from './sessions/refresh-tokens.js'
import { inBodies, inCookies, ownPagesPlugin } from './sessions/token-carrier.js'

/** The largest valid body changes a password: two passwords of 1,024 bytes, escaped. */
const PUBLIC_BODY_BYTES = 16 * 1_024
/** The largest password and stored hash, escaped. */
const SERVICE_BODY_BYTES = 32 * 1_024
/** How long running answers of the ops port may take when it closes, in milliseconds. */
const OPS_CLOSE_MS = 1_000
/** The time that a request needs in addition to its wait, in milliseconds. */
const CLOSE_MARGIN_MS = 5_000

/** The operations of the public API: routes, tickets, metrics labels and OpenAPI follow from it. */
export const operations: readonly Operation<Deps>[] = [
  ...[register, login, changePassword, resetPassword],
  ...[changeEmail, verifyPassword, deleteAccount],
]

export interface Opened
  extends Omit<OperatorPagesOptions, 'config' | 'failures'>,
    Pick<Deps, 'keys' | 'tokenClaims' | 'sessionOpener' | 'tokenIssuer' | 'isDraining'> {
  shedder: LoadShedder
  tracing: Tracing | undefined
  accessTokens: AccessTokenOptions
  admission: Admission
  keyring: Keyring
  countingRedis: readonly CountingRedis[]
  breached: PasswordList | undefined
  log: Logger
}

/** The longest time that closing takes, in milliseconds: then late bodies are cut off. */
export function closeTimeMs({ LOGIN_WAIT_MS }: GatewayConfig): number {
  return LOGIN_WAIT_MS + CLOSE_MARGIN_MS
}

export async function buildPublicApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const { database, passwords, countingRedis: redis, keyring, audit, metrics, log } = opened
  const nowMs = () => passwords.now()
  const devices = new DeviceTokens(keyring, { ttlS: config.DEVICE_TTL_S, nowMs })
  const deviceOf: DeviceOf = (headers) => devices.recognize(deviceTokenOf(headers))
  const app = await newApi(config, opened, { bodyLimitBytes: PUBLIC_BODY_BYTES, docs: publicDocs, deviceOf })
  await app.register(blocksPlugin, opened)
  const origins = listOf(config.CORS_ORIGINS)
  await app.register(crossOriginPlugin, { origins, credentials: config.SESSION_COOKIE, metrics })
  if (config.SESSION_COOKIE) await app.register(ownPagesPlugin, { origins, issuer: config.ISSUER })
  const lives = { sessionS: Math.min(config.SESSION_IDLE_S, config.SESSION_TTL_S), deviceS: config.DEVICE_TTL_S }
  const tokenCarrier = config.SESSION_COOKIE ? inCookies(lives) : inBodies
  await app.register(accessTokenPlugin, opened.accessTokens)
  await app.register(limitsPlugin, {
    ...{ config, redis, keyring },
    sessionNameOf: (request) => sessionNameOf(tokenCarrier.shownBy(request)),
  })
  await app.register(auditRateLimitsPlugin, { audit })
  await app.register(guessingPlugin, { config, keyring, devices, redis, nowMs, metrics, log })

  const { ISSUER: issuer, LEGACY_VERIFY: asksOldSystem, LOGIN_NEEDS_CONFIRMATION: needsConfirmedEmail } = config
  app.decorate('isRegistrationOpen', config.REGISTRATION === 'open')
  app.decorate('sendsMail', opened.post !== undefined)
  const upgrades = new HashUpgrades({ passwords, database, mode: config.REHASH, log })
  app.addHook('onClose', () => upgrades.close())
  if (asksOldSystem) {
    const remembering = rememberDeletedAddresses(database, log)
    app.addHook('onClose', () => remembering.close())
  }
  const deps: Deps = {
    ...{ ...opened, issuer, asksOldSystem, upgrades, guessing: app.guessing, tokenCarrier },
    newPasswords: new NewPasswords({
      minLength: config.PASSWORD_MIN_LENGTH,
      service: URL.canParse(issuer) ? new URL(issuer).hostname : issuer,
      breached: opened.breached,
    }),
    credentials: new Credentials(database, { needsConfirmedEmail, asksOldSystem }),
  }
  const line = new LineDocument(passwords, keyring)
  const conductor = new Conductor({
    ...{ ...opened, deps, operations, config, line, deviceOf },
    limitRedemption: app.limitRedeemNetwork,
  })

  await app.register(healthRoutes, deps)
  conductor.mount(app)
  await app.register(lineRoutes, { line })
  await app.register(ticketRoutes, { conductor })
  for (const routes of [tokenRoutes, meRoutes, sessionRoutes, mailRoutes, discoveryRoutes])
    await app.register(routes, deps)
  return app
}

/** Hashing for applications in any language that keep their own users. On a listener of its own. */
export async function buildServiceApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const { passwords, keyring, sessions } = opened
  const app = await newApi(config, opened, { bodyLimitBytes: SERVICE_BODY_BYTES, docs: serviceDocs })
  await app.register(serviceKeysPlugin, { keys: config.SERVICE_KEYS })
  const { LIMIT_PER_SERVICE: max, QUEUE_PREFIX: queuePrefix } = config
  const limitOf = (kind: string) => {
    const nameOf = ({ service }: FastifyRequest) => `${kind}:${service}`
    const limit = { max, reason: 'service_limit', nameOf, headers: 'always' } as const
    return new RateLimit(opened.countingRedis, queuePrefix, limit).count
  }
  app.decorate('limitService', limitOf('service'))
  await app.register(accessTokenPlugin, { ...opened.accessTokens, tokenOf: tokenToIntrospect })
  await app.register(introspectionRoute, { sessions })
  const line = new LineDocument(passwords, keyring)
  const conductor = new Conductor({
    ...{ ...opened, deps: undefined, operations: serviceOperations, config, line },
    // Counted by themselves: new requests must not use up what their answers are fetched with.
    limitRedemption: limitOf('service-redeem'),
    // A ticket is its service's own.
    isOwn: (contents, { service }) => service !== undefined && 'service' in contents && contents.service === service,
  })
  conductor.mount(app)
  const byKey = { onRequest: app.requireServiceKey, security: [{ serviceKey: [] }] }
  await app.register(lineRoutes, { line, ...byKey })
  await app.register(ticketRoutes, { conductor, ...byKey })
  return app
}

/** Metrics for Prometheus and pages for operators. The other two serve nothing of it. */
export async function buildOpsPort(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const app: FastifyInstance = fastify({
    ...serverOptions(config, opened.log),
    rewriteUrl: ({ url = '/' }) => withoutBase(url, config.OPS_BASE_PATH),
    // A mistyped parameter would show more than was asked for.
    ajv: { customOptions: { ...ownSchemas, formats, removeAdditional: false } },
  })
  await watchConnections(app, config, { graceMs: OPS_CLOSE_MS, isDraining: opened.isDraining })
  await app.register(problemPlugin)
  await app.register(messageRulesPlugin)
  await app.register(jsonBodyPlugin)
  const failures = new Failures(config, opened.countingRedis, opened.keyring)
  await app.register(operatorPagesPlugin, { ...opened, config, failures })
  return app
}

interface ApiOptions {
  bodyLimitBytes: number
  docs: DocsOptions
  /** Identifies known devices, whose requests go first in an overload. */
  deviceOf?: DeviceOf
}

/** A server with the plugins that the public API and the service API share. Their order matters. */
async function newApi(config: GatewayConfig, opened: Opened, options: ApiOptions): Promise<FastifyInstance> {
  const { log, metrics, shedder, tracing, isDraining } = opened
  const { bodyLimitBytes, docs, deviceOf } = options
  const app: FastifyInstance = fastify({
    ...serverOptions(config, log),
    bodyLimit: bodyLimitBytes,
    // Fastify runs no hooks for these two.
    clientErrorHandler({ code }, socket) {
      const requests = app.requestsOn(socket)
      // The client would take this answer for the answer of an earlier request.
      if (requests.some(({ raw }) => raw.complete) || !socket.writable) return void socket.destroy()
      // What follows on the connection would be an error again.
      socket.pause()
      const error = connectionProblem(code)
      // A broken-off request is noted when its connection ends; an unused connection asked nothing.
      const isNoted = requests.length === 0 && socket.bytesRead > 0
      const requestId = newId()
      app.whenRejectionIsDue(() => {
        if (isNoted) noteUnrouted(error, { log: log.child({ requestId }), metrics })
        sendConnectionProblem(error, socket, { requestId, further: app.connectionProblemHeaders?.(socket) })
      })
    },
    frameworkErrors(thrown, request, reply) {
      const error = toApiError(thrown)
      app.whenRejectionIsDue(() => {
        noteUnrouted(error, { log: request.log, metrics, method: request.method })
        sendProblem(error, request, reply)
      })
    },
    ajv: {
      customOptions: {
        ...{ ...ownSchemas, formats, allErrors: true, coerceTypes: false, removeAdditional: false },
        discriminator: true,
      },
    },
  })
  // First: every later plugin relies on connections being tracked.
  await watchConnections(app, config, { graceMs: closeTimeMs(config), isDraining })
  if (tracing !== undefined) await app.register(import('./plugins/request-trace.js'))
  await app.register(requestLogPlugin, { metrics })
  await app.register(answerHeadersPlugin)
  await app.register(messageRulesPlugin)
  await app.register(loadSheddingPlugin, { shedder, metrics, bodyLimitBytes, deviceOf, isDraining })
  await app.register(problemPlugin)
  await app.register(jsonBodyPlugin)
  await app.register(docsPlugin, docs)
  return app
}

async function watchConnections(
  app: FastifyInstance,
  { REQUEST_TIMEOUT_MS: stalledMs, TRUST_PROXY }: GatewayConfig,
  drain: { graceMs: number; isDraining(): boolean },
): Promise<void> {
  await app.register(requestIdPlugin, { trustedProxies: listOf(TRUST_PROXY) })
  await app.register(clientGonePlugin)
  await app.register(drainPlugin, drain)
  app.addHook('onReady', async () => limitPipelining(app.server))
  await app.register(stalledConnectionsPlugin, { stalledMs })
}

declare module 'fastify' {
  interface FastifyInstance {
    isRegistrationOpen: boolean
    sendsMail: boolean
    /** `onRequest` hook that counts a request against the limit of its service. */
    limitService: LimitRequest
  }
}
