/**
 * The three servers of a gateway, built from plugins: the public API, the service API and the ops port. What they share was opened by
 * start.ts, and stays its to close.
 */

import { randomUUID } from 'node:crypto'
import type { Logger } from '@spillway/common/log'
import { limitPipelining } from '@spillway/common/pipeline-limit'
import { listOf } from '@spillway/common/settings'
import type { Keyring } from '@spillway/queue/queue-client'
import type { Admission } from '@spillway/queue/wait/admission'
import { type FastifyInstance, fastify } from 'fastify'
import { auditRateLimitsPlugin } from './audit/recorder.js'
import type { GatewayConfig } from './config.js'
import type { PasswordList } from './operations/breached-list.js'
import { Conductor } from './operations/conductor.js'
import type { Deps } from './operations/deps.js'
import { HashUpgrades } from './operations/hash-upgrades.js'
import { LineDocument } from './operations/line-document.js'
import { operations } from './operations/list.js'
import { createFindCredential } from './operations/login.js'
import { createPasswordCheck } from './operations/new-password.js'
import { serviceOperations } from './operations/service-passwords.js'
import { type OperatorPagesOptions, operatorPagesPlugin, withoutBase } from './operators/pages.js'
import { clientGonePlugin } from './plugins/client-gone.js'
import { type CommonOptions, commonPlugin } from './plugins/common.js'
import { drainPlugin, stalledConnectionsPlugin } from './plugins/connections.js'
import type { CountingRedis } from './plugins/counts.js'
import { createAccountNames } from './plugins/counts.js'
import { crossOriginPlugin } from './plugins/cross-origin.js'
import { publicDocs, serviceDocs } from './plugins/docs.js'
import { toApiError } from './plugins/foreign-errors.js'
import { DeviceTokens, deviceTokenOf } from './plugins/guessing/device-token.js'
import { guessingPlugin } from './plugins/guessing/plugin.js'
import { createLimits, type LimitRequest, limitsPlugin } from './plugins/limits.js'
import type { DeviceOf } from './plugins/load-shedding/preference.js'
import { jsonBodyPlugin, messageRulesPlugin } from './plugins/message-rules.js'
import { connectionProblem, problemPlugin, sendConnectionProblem, sendProblem } from './plugins/problems.js'
import { noteUnrouted } from './plugins/request-log.js'
import { ownSchemas, serverOptions } from './plugins/server-options.js'
import { serviceKeysPlugin } from './plugins/service-keys.js'
import { discoveryRoutes } from './routes/discovery.js'
import { healthRoutes } from './routes/health.js'
import { introspectionRoute } from './routes/introspect.js'
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

/** What start.ts opens. */
export interface Opened
  extends Omit<CommonOptions, 'config' | 'bodyLimitBytes' | 'docs' | 'deviceOf'>,
    Omit<OperatorPagesOptions, 'config' | 'metrics'>,
    Pick<Deps, 'keys' | 'tokenClaims' | 'sessions' | 'audit' | 'post' | 'issueTokens'> {
  accessTokens: AccessTokenOptions
  admission: Admission
  keyring: Keyring
  countingRedis: readonly CountingRedis[]
  /** Undefined without BREACHED_PASSWORDS_FILE. */
  breached: PasswordList | undefined
  log: Logger
}

/** Accounts and sessions. */
export async function buildPublicApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const { database, passwords, countingRedis, keyring, keys, accessTokens, issueTokens, sessions } = opened
  const { audit, post, admission, metrics, log } = opened
  const nowMs = () => passwords.now()
  const devices = new DeviceTokens(keyring, { ttlS: config.DEVICE_TTL_S, nowMs })
  const deviceOf: DeviceOf = (headers) => devices.recognize(deviceTokenOf(headers))
  const app = newServer(config, opened, PUBLIC_BODY_BYTES)
  await app.register(commonPlugin, { ...opened, config, bodyLimitBytes: PUBLIC_BODY_BYTES, docs: publicDocs, deviceOf })
  const origins = listOf(config.CORS_ORIGINS)
  await app.register(crossOriginPlugin, { origins, credentials: config.SESSION_COOKIE, metrics })
  if (config.SESSION_COOKIE) await app.register(ownPagesPlugin, { origins, issuer: config.ISSUER })
  const lives = { sessionS: Math.min(config.SESSION_IDLE_S, config.SESSION_TTL_S), deviceS: config.DEVICE_TTL_S }
  const tokenCarrier = config.SESSION_COOKIE ? inCookies(lives) : inBodies
  await app.register(accessTokenPlugin, accessTokens)
  const accountNameOf = createAccountNames(keyring)
  await app.register(limitsPlugin, {
    redis: countingRedis,
    queuePrefix: config.QUEUE_PREFIX,
    perAccount: config.LIMIT_PER_ACCOUNT,
    refreshPerAddress: config.LIMIT_REFRESH_PER_ADDRESS,
    refreshPerSession: config.LIMIT_REFRESH_PER_SESSION,
    redeemPerAddress: config.LIMIT_REDEEM_PER_ADDRESS,
    mailPerNetwork: config.LIMIT_MAIL_PER_NETWORK,
    sessionNameOf: (request) => sessionNameOf(tokenCarrier.shownBy(request)),
    accountNameOf,
  })
  await app.register(auditRateLimitsPlugin, { audit })
  await app.register(guessingPlugin, {
    ...{ config, keyring, devices, accountNameOf, nowMs, metrics, log },
    redis: countingRedis,
  })

  const { ISSUER: issuer } = config
  app.decorate('isRegistrationOpen', config.REGISTRATION === 'open')
  app.decorate('sendsMail', post !== undefined)

  const checkPassword = createPasswordCheck({
    minLength: config.PASSWORD_MIN_LENGTH,
    service: URL.canParse(issuer) ? new URL(issuer).hostname : issuer,
    breached: opened.breached,
  })
  const upgrades = new HashUpgrades({ passwords, database, mode: config.REHASH, log })
  app.addHook('onClose', () => upgrades.close())
  const all: Deps = {
    ...{ database, passwords, keys, audit, post, isDraining: opened.isDraining, log },
    ...{ issuer, tokenClaims: opened.tokenClaims },
    ...{ sessions, issueTokens, checkPassword, upgrades, guessing: app.guessing, tokenCarrier },
    findCredential: createFindCredential(database, {
      needsConfirmedEmail: config.LOGIN_NEEDS_CONFIRMATION,
      asksOldSystem: config.LEGACY_VERIFY,
    }),
    asksOldSystem: config.LEGACY_VERIFY,
  }
  if (config.LEGACY_VERIFY) {
    const remembering = rememberDeletedAddresses(database, log)
    app.addHook('onClose', remembering.close)
  }
  const line = new LineDocument(passwords, keyring)
  const conductor = new Conductor({
    ...{ deps: all, operations, passwords, database, keyring, admission, metrics, log, config },
    ...{ line, deviceOf, perSecond: opened.shedder.perSecond },
    limitRedemption: app.limitRedeemAddress,
  })

  await app.register(healthRoutes, all)
  conductor.mount(app)
  await app.register(lineRoutes, { line })
  await app.register(ticketRoutes, { conductor })
  await app.register(tokenRoutes, all)
  await app.register(meRoutes, all)
  await app.register(sessionRoutes, all)
  await app.register(mailRoutes, all)
  await app.register(discoveryRoutes, all)
  return app
}

/** Hashing for applications in any language that keep their own users. On a listener of its own. */
export async function buildServiceApi(config: GatewayConfig, opened: Opened): Promise<FastifyInstance> {
  const { database, passwords, keyring, admission, metrics, log } = opened
  const app = newServer(config, opened, SERVICE_BODY_BYTES)
  await app.register(commonPlugin, { ...opened, config, bodyLimitBytes: SERVICE_BODY_BYTES, docs: serviceDocs })
  await app.register(serviceKeysPlugin, { keys: config.SERVICE_KEYS })
  const limit = createLimits(opened.countingRedis, config.QUEUE_PREFIX)
  const limitOf = (kind: string) =>
    limit({
      max: config.LIMIT_PER_SERVICE,
      reason: 'service_limit',
      nameOf: ({ service }) => `${kind}:${service}`,
      headers: 'always',
    })
  app.decorate('limitService', limitOf('service'))
  await app.register(accessTokenPlugin, opened.accessTokens)
  await app.register(introspectionRoute, {
    verify: app.verifyAccessToken,
    sessions: opened.sessions,
    onRequest: [app.requireServiceKey, app.limitService],
  })
  const line = new LineDocument(passwords, keyring)
  const conductor = new Conductor({
    ...{
      deps: undefined,
      operations: serviceOperations,
      passwords,
      database,
      keyring,
      admission,
      metrics,
      log,
      config,
    },
    ...{ line, perSecond: opened.shedder.perSecond },
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
  const { isDraining, log } = opened
  const app: FastifyInstance = fastify({
    rewriteUrl: ({ url = '/' }) => withoutBase(url, config.OPS_BASE_PATH),
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
  await app.register(drainPlugin, { graceMs: OPS_CLOSE_MS, isDraining })
  await app.register(stalledConnectionsPlugin, { stalledMs: config.REQUEST_TIMEOUT_MS })
  await app.register(problemPlugin)
  await app.register(messageRulesPlugin)
  await app.register(jsonBodyPlugin)
  await app.register(operatorPagesPlugin, { ...opened, config })
  return app
}

/** A server of the public API or the service API, without plugins. */
function newServer(config: GatewayConfig, { log, metrics }: Opened, bodyLimitBytes: number): FastifyInstance {
  const app: FastifyInstance = fastify({
    ...serverOptions({
      ...{ log, requestTimeoutMs: config.REQUEST_TIMEOUT_MS },
      trustedProxies: listOf(config.TRUST_PROXY),
    }),
    genReqId: () => randomUUID(),
    bodyLimit: bodyLimitBytes,
    // While it closes, a gateway still answers requests on open connections, and closes each connection with its answer.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Fastify runs no hooks for these two.
    clientErrorHandler({ code }, socket) {
      const requests = app.requestsOn(socket)
      // The client would take this answer for the answer of an earlier request.
      if (requests.some(({ raw }) => raw.complete) || !socket.writable) return void socket.destroy()
      // What follows on the connection would be an error again.
      socket.pause()
      const error = connectionProblem(code)
      // A request whose body is broken off is noted when its connection ends; nobody asked anything on an unused connection.
      const isNoted = requests.length === 0 && socket.bytesRead > 0
      app.whenRejectionIsDue(() => {
        if (isNoted) noteUnrouted(error, { log, metrics })
        sendConnectionProblem(error, socket, app.connectionProblemHeaders?.(socket))
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
        ...ownSchemas,
        allErrors: true,
        coerceTypes: false,
        removeAdditional: false,
        discriminator: true,
        formats,
      },
    },
  })
  return app
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether anyone may make an account. */
    isRegistrationOpen: boolean
    /** Whether mail is on. */
    sendsMail: boolean
    /** `onRequest` hook that counts a request against the limit of its service. */
    limitService: LimitRequest
  }
}
