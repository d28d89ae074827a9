/** The public API of a gateway: accounts and sessions. */
import { presentMs } from '@spillway/client/queue/ticket'
import type { Keyring } from '@spillway/client/queue-client'
import { listOf } from '@spillway/worker/settings'
import type { FastifyInstance } from 'fastify'
import { auditRateLimitsPlugin } from './audit/events.js'
import type { PasswordList } from './breached/list.js'
import type { GatewayConfig } from './config.js'
import { createDeviceTokens, deviceTokenOf } from './guessing/device-token.js'
import { openGuessing } from './guessing/open.js'
import { crossOriginPlugin } from './http/cross-origin.js'
import type { DocsOptions } from './http/docs.js'
import { createAccountNames } from './limits/account-name.js'
import { limitsPlugin } from './limits/limits.js'
import type { CountingRedis } from './limits/shared-counts.js'
import type { DeviceOf } from './load-shedding/preference.js'
import { Conductor } from './operations/conductor.js'
import type { Deps } from './operations/deps.js'
import { createHashUpgrades } from './operations/hash-upgrades.js'
import { operations } from './operations/list.js'
import { createFindCredential } from './operations/login.js'
import { createPasswordCheck } from './operations/new-password.js'
import { discoveryRoutes } from './routes/discovery.js'
import { healthRoutes } from './routes/health.js'
import { mailRoutes } from './routes/mail.js'
import { meRoutes, sessionRoutes } from './routes/sessions.js'
import { lineRoutes, ticketRoutes } from './routes/tickets.js'
import { tokenRoutes } from './routes/tokens.js'
import { buildServer, type ServerDeps } from './server.js'
import { type AccessTokenOptions, accessTokenPlugin, type IssueTokens } from './sessions/access-token.js'
import { rememberDeletedAddresses } from './sessions/deleted-addresses.js'
import { sessionNameOf } from './sessions/refresh-tokens.js'
import { inBodies, inCookies, ownPagesPlugin } from './sessions/token-carrier.js'
import type { Admission } from './waiting/admission.js'
import { LineDocument } from './waiting/line-document.js'

/** The largest valid body changes a password: two passwords of 1,024 bytes, escaped. */
const BODY_LIMIT_BYTES = 16 * 1_024

/** What the gateway opens and closes. */
export interface AppDeps
  extends ServerDeps,
    Pick<Deps, 'database' | 'passwords' | 'keys' | 'tokenClaims' | 'sessions' | 'audit' | 'post'> {
  accessTokens: AccessTokenOptions
  issueTokens: IssueTokens
  countingRedis: readonly CountingRedis[]
  admission: Admission
  keyring: Keyring
  /** Undefined without BREACHED_PASSWORDS_FILE. */
  breached: PasswordList | undefined
}

const docs: DocsOptions = {
  title: 'Spillway',
  description:
    'Accounts and logins that survive the spike. A request whose hash takes longer than it is held is answered with 202 and a ' +
    'ticket; errors are RFC 9457 problems with a stable code.',
  tags: [
    { name: 'Accounts', description: 'Registration and the signed-in user' },
    { name: 'Sessions', description: 'Logging in and out, tokens, and the keys they are verified with' },
    { name: 'Tickets', description: 'Answers that came later' },
    { name: 'Probes', description: 'For balancers and orchestrators' },
  ],
  securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
}

/** Builds the public application. Dependencies stay the caller's to close. */
export async function buildApp(config: GatewayConfig, deps: AppDeps): Promise<FastifyInstance> {
  const {
    database,
    passwords,
    countingRedis,
    admission,
    keyring,
    keys,
    accessTokens,
    issueTokens,
    sessions,
    audit,
    post,
    metrics,
    log,
  } = deps
  const nowMs = () => passwords.now()
  const devices = createDeviceTokens(keyring, { ttlS: config.DEVICE_TTL_S, nowMs })
  const deviceOf: DeviceOf = (headers) => devices.recognize(deviceTokenOf(headers))
  const app = await buildServer(config, deps, { bodyLimitBytes: BODY_LIMIT_BYTES, docs, deviceOf })
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
    perAddress: config.LIMIT_PER_ADDRESS,
    perAccount: config.LIMIT_PER_ACCOUNT,
    refreshPerAddress: config.LIMIT_REFRESH_PER_ADDRESS,
    refreshPerSession: config.LIMIT_REFRESH_PER_SESSION,
    redeemPerAddress: config.LIMIT_REDEEM_PER_ADDRESS,
    presentMs: presentMs(config.LOGIN_WAIT_MS, config.TICKET_TTL_MS),
    ticketTtlMs: config.TICKET_TTL_MS,
    mailPerNetwork: config.LIMIT_MAIL_PER_NETWORK,
    sessionNameOf: (request) => sessionNameOf(tokenCarrier.shownBy(request)),
    accountNameOf,
  })
  await app.register(auditRateLimitsPlugin, { audit })
  const guessing = await openGuessing(app, config, {
    keyring,
    devices,
    redis: countingRedis,
    accountNameOf,
    nowMs,
    metrics,
    log,
  })

  const { ISSUER: issuer } = config
  app.decorate('isRegistrationOpen', config.REGISTRATION === 'open')
  app.decorate('sendsMail', post !== undefined)

  const checkPassword = createPasswordCheck({
    minLength: config.PASSWORD_MIN_LENGTH,
    service: URL.canParse(issuer) ? new URL(issuer).hostname : issuer,
    breached: deps.breached,
  })
  const upgrades = createHashUpgrades({ passwords, database, mode: config.REHASH, log })
  app.addHook('onClose', upgrades.close)
  const all: Deps = {
    ...{ database, passwords, keys, audit, post, isDraining: deps.isDraining, log },
    ...{ issuer, tokenClaims: deps.tokenClaims },
    ...{ sessions, issueTokens, checkPassword, upgrades, guessing, tokenCarrier },
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
    ...{ line, deviceOf, perSecond: deps.shedder.perSecond },
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
