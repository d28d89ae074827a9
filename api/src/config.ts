/** A gateway's configuration: every setting with its default, bounds and meaning. */

import { readSettings, type Settings } from '@spillway/common/read-settings'
import {
  boolean,
  choice,
  commonSettings,
  integer,
  isLoopback,
  listOf,
  notEmpty,
  ports,
  required,
  secret,
  text,
} from '@spillway/common/settings'
import { connectionTo } from '@spillway/prisma'
import { refuseGuessableKeys } from '@spillway/queue/client'
import { parseRedisUrl } from '@spillway/queue/redis/url'
import { queueSettings } from '@spillway/queue/settings'
import { rehashModes } from '@spillway/queue/wire/stored-hash'
import type { FromSchema } from 'json-schema-to-ts'
import { parseSmtpUrl } from './mail/smtp.js'
import { roles } from './ops/named.js'
import { isCommon } from './passwords/new-password.js'
import { isAddressRange, lengthOf, parseSender } from './schemas/credentials.js'
import { optionalClaimNames } from './sessions/access-tokens.js'

/** The JSON Schema of the environment. `pnpm size` calculates with its defaults. */
export const GatewayConfig = {
  type: 'object',
  properties: {
    HOST: text('127.0.0.1', 'Interface of the public API'),
    PORT: integer(3000, ports, 'Port of the public API; 0 selects a free port'),
    OPS_HOST: text('127.0.0.1', 'Interface of the ops port'),
    OPS_PORT: integer(9464, ports, 'Port of `/metrics`, the live page, Bull Board and the audit'),
    DATABASE_URL: secret(required('URL of PostgreSQL; with `?pgbouncer=true` behind PgBouncer')),
    DATABASE_POOL_SIZE: integer(
      10,
      [1, 1_000],
      'Connections to PostgreSQL, and two more for operators. A login uses one for two short queries, and none while it waits',
    ),
    ...queueSettings,
    ...commonSettings,
    SPILLWAY_JWT_KEYS: secret(
      required(
        'Keys that sign access tokens: `kid:base64` or `base64` of an Ed25519, P-256 or RSA private key (PKCS#8 DER), comma-separated. The first key signs; all keys verify',
      ),
    ),
    ISSUER: text(
      'spillway',
      'Issuer of access tokens: the public URL of this API, which verifiers must be configured with. A name that is not a URL turns discovery off',
      notEmpty,
    ),
    JWT_AUDIENCE: text(
      'spillway',
      'Audience of access tokens. Services that accept them must require the same audience',
      notEmpty,
    ),
    TOKEN_CLAIMS: text('', 'Additional claims of access tokens: `email`, `email_verified`, comma-separated'),
    ACCESS_TOKEN_TTL_S: integer(900, [1, 86_400], 'Life of an access token'),
    SESSION_TTL_S: integer(30 * 24 * 3_600, [1, 365 * 24 * 3_600], 'How long a session lives if it is refreshed'),
    SESSION_IDLE_S: integer(
      14 * 24 * 3_600,
      [1, 365 * 24 * 3_600],
      'How long a session lives without a refresh; at least `ACCESS_TOKEN_TTL_S`, so that no access token outlives it',
    ),
    REFRESH_GRACE_S: integer(
      10,
      [0, 300],
      'How long a replaced refresh token returns its successor again; 0 turns this off',
    ),
    SESSION_COOKIE: boolean(
      false,
      'Whether refresh and device tokens are cookies, which scripts cannot read, instead of fields. For pages of this origin, or of `CORS_ORIGINS` on the same site',
    ),
    LOGIN_WAIT_MS: integer(
      8_000,
      [0, 300_000],
      'How long a request is held for its answer, and the maximum of `Prefer: wait`; at least 3 s less than `TICKET_TTL_MS`',
    ),
    TICKET_TTL_MS: integer(
      300_000,
      [3_000, 3_600_000],
      'How long after its request a job may wait, and its ticket can be redeemed',
    ),
    MAX_OUTSTANDING: integer(
      50_000,
      [1],
      'Maximum of waiting and active jobs; further ones are refused. A job takes 2 kB of Redis, 4.6 kB with the longest passwords',
    ),
    LIMIT_PER_ADDRESS: integer(
      300,
      [0],
      'Failed logins and other requests with credentials per minute from one address; 0 means no limit',
    ),
    LIMIT_PER_ACCOUNT: integer(20, [0], 'Requests with credentials per minute for one account; 0 means no limit'),
    GUESSES_PER_ACCOUNT: integer(
      10,
      [0, 1_000_000],
      'Consecutive failures of all unknown devices on one account that cause no delay. After them, the next login of an unknown device waits a second, and twice as long after each further failure, up to an hour; 0 means no delay',
    ),
    GUESSES_PER_DEVICE: integer(10, [1, 100], 'Consecutive failures of a known device before it is treated as unknown'),
    DEVICE_TTL_S: integer(90 * 24 * 3_600, [60, 400 * 24 * 3_600], 'How long a device is known after its last login'),
    LIMIT_REFRESH_PER_ADDRESS: integer(
      3_000,
      [0],
      'Refreshes and logouts per minute from one address: enough for a company of 40,000 people. Made-up tokens do not count; 0 means no limit',
    ),
    LIMIT_REFRESH_PER_SESSION: integer(
      60,
      [0],
      'Refreshes per minute of one session: enough for many tabs; 0 means no limit',
    ),
    LIMIT_REDEEM_PER_ADDRESS: integer(
      30_000,
      [0],
      'Redemptions per minute from one address: enough for 2,500 people who redeem every 5 s. Made-up tickets do not count; 0 means no limit',
    ),
    SERVICE_KEYS: secret(
      text(
        '',
        'Keys of the service API: `name:base64` of 32 bytes for each application, comma-separated. A name may have several keys, for rotation. Without keys the API is off',
      ),
    ),
    SERVICE_HOST: text('127.0.0.1', 'Interface of the service API'),
    SERVICE_PORT: integer(3100, ports, 'Port of the service API'),
    LIMIT_PER_SERVICE: integer(
      0,
      [0],
      'Requests per minute from one application, and separately redemptions of its tickets; 0 means no limit',
    ),
    REQUEST_TIMEOUT_MS: integer(
      30_000,
      [1_000, 300_000],
      'How long a request and its body may take to arrive, and how long a client may stop reading its answer',
    ),
    KEEP_ALIVE_S: integer(
      72,
      [1, 3_600],
      'How long a connection without a request stays open. It must be longer than in the load balancer in front (AWS: 60, Google Cloud: 600), which otherwise gets a reset',
    ),
    TRUST_PROXY: text(
      '',
      'Proxies whose `X-Forwarded-For` and `X-Request-Id` are trusted: addresses or CIDR ranges, comma-separated',
    ),
    CORS_ORIGINS: text(
      '',
      'Origins of pages that may use the API from a browser, comma-separated: `https://app.example.com`, `capacitor://localhost`. In `https://*.preview.example.com` the `*` stands for one label; it is refused with `SESSION_COOKIE`',
    ),
    REGISTRATION: choice('open', ['open', 'closed'], 'Whether anyone may register'),
    SMTP_URL: secret(
      text(
        '',
        'URL of the mail server, with user and password if required: `smtps://`, or `smtp://`, which needs STARTTLS or `?starttls=optional` beyond the loopback. If empty, no mail is sent',
      ),
    ),
    MAIL_FROM: text('', 'Sender of mails: `Shop <no-reply@example.com>`'),
    MAIL_CONFIRM_URL: text(
      '',
      'URL of the page that confirms an address; `{token}` is replaced. Put it after a `#`, so that no server, log or Referer gets it',
    ),
    MAIL_RESET_URL: text('', 'URL of the page that sets a new password; `{token}` is replaced'),
    MAIL_TEXTS: text('', 'Folder of mail texts that replace the built-in ones'),
    MAIL_CONFIRM_TTL_S: integer(24 * 3_600, [60, 7 * 24 * 3_600], 'How long a link that confirms an address is valid'),
    MAIL_RESET_TTL_S: integer(1_800, [60, 24 * 3_600], 'How long a link that sets a new password is valid'),
    LIMIT_MAIL_PER_RECIPIENT: integer(5, [0], 'Mails per hour to one address, for all clients; 0 means no limit'),
    LIMIT_MAIL_PER_NETWORK: integer(100, [0], 'Requests for mail per hour from one network; 0 means no limit'),
    LOGIN_NEEDS_CONFIRMATION: boolean(false, 'Whether a login requires a confirmed address'),
    PASSWORD_MIN_LENGTH: integer(
      8,
      [8, 64],
      'Minimum characters of a new password. NIST SP 800-63B-4, 3.1.1.2: 15 if it is the only factor, otherwise 8',
    ),
    BREACHED_PASSWORDS_FILE: text(
      '',
      'List of breached passwords that are refused as new passwords, made by `pnpm accounts breached build`. Without it, only common passwords are refused',
    ),
    REHASH: choice(
      'weaker',
      rehashModes,
      "Stored hashes that a login replaces after its answer: `weaker` replaces hashes below the workers' policy, `always` any other algorithm or cost, `never` none",
    ),
    AUDIT_RETENTION_DAYS: integer(90, [0, 3_650], 'How long audit events are kept; 0 turns the audit off'),
    OPS_USER: text('operator', 'User of the ops port', notEmpty),
    OPS_PASSWORD: secret(text('', 'Password of `OPS_USER`, an admin; 12 characters or more beyond the loopback')),
    OPS_OPERATORS_FILE: text(
      '',
      'File of operators with their roles and the digests of their tokens, as `pnpm accounts operator` prints them. A change takes effect at once. Without this file, `OPS_PASSWORD` and `OPS_PROXIES`, the ops port must be on the loopback interface',
    ),
    OPS_PROXIES: text(
      '',
      'Proxies whose `X-Forwarded-User` and `X-Forwarded-Groups` name the operator, as oauth2-proxy sends them: addresses or CIDR ranges, comma-separated. From other clients they are ignored',
    ),
    OPS_PROXY_SECRET: secret(
      text(
        '',
        'Secret of 16 characters or more that `OPS_PROXIES` must send as `X-Ops-Proxy-Secret`. Set it if `OPS_PROXIES` contains other processes, such as pods of a cluster',
        { pattern: '^(.{16,})?$' },
      ),
    ),
    OPS_GROUPS: text(
      '',
      'Roles of the groups that `OPS_PROXIES` send, comma-separated: `sre:admin,helpdesk:support,staff:viewer`',
    ),
    OPS_BASE_PATH: text(
      '',
      'Path of the ops pages at a reverse proxy, for example `/ops`; the proxy may keep or strip it',
      { pattern: '^(/(?!\\.)[\\w.~-]+)*$' },
    ),
    DRAIN_MS: integer(
      0,
      [0, 300_000],
      'How long a gateway still answers after SIGTERM. It closes each connection with its answer; `/readyz` fails, so that load balancers notice. SIGINT ends this time',
    ),
  },
  required: ['DATABASE_URL', 'SPILLWAY_SEAL_KEYS', 'SPILLWAY_JWT_KEYS'],
  additionalProperties: false,
} as const
export type GatewayConfig = Settings<GatewayVariables>
type GatewayVariables = FromSchema<typeof GatewayConfig>

/** Reads the environment once. Throws one error that names every invalid variable, no values. */
export function readGatewayConfig(env: NodeJS.ProcessEnv): GatewayConfig {
  return readSettings<GatewayVariables>(GatewayConfig, env, contradictionsIn)
}

// Rules that the schema cannot express. They check the raw texts.

/** The least life of a ticket after the longest hold, in milliseconds: time to redeem it. */
const TIME_TO_REDEEM_MS = 3_000

/** The least length of OPS_PASSWORD beyond the loopback: it is rarely changed. */
const OPERATOR_PASSWORD_LENGTH = 12

type Defaulted =
  | ('LOGIN_WAIT_MS' | 'TICKET_TTL_MS' | 'SESSION_IDLE_S' | 'ACCESS_TOKEN_TTL_S')
  | ('TRUST_PROXY' | 'CORS_ORIGINS' | 'SESSION_COOKIE' | 'ISSUER' | 'TOKEN_CLAIMS')
  | ('OPS_HOST' | 'OPS_PASSWORD' | 'OPS_OPERATORS_FILE' | 'OPS_PROXIES' | 'OPS_GROUPS')

/** A sentence for each broken rule. It contains no values except names. */
function* contradictionsIn(env: NodeJS.ProcessEnv): Generator<string> {
  const textOf = (name: Defaulted) => env[name] ?? String(GatewayConfig.properties[name].default)
  if (Number(textOf('LOGIN_WAIT_MS')) + TIME_TO_REDEEM_MS > Number(textOf('TICKET_TTL_MS')))
    yield `LOGIN_WAIT_MS must be ${TIME_TO_REDEEM_MS} ms or more below TICKET_TTL_MS: a ticket that is given after the wait must leave time to redeem it`
  if (Number(textOf('SESSION_IDLE_S')) < Number(textOf('ACCESS_TOKEN_TTL_S')))
    yield 'SESSION_IDLE_S must not be below ACCESS_TOKEN_TTL_S: an access token would outlive its session'
  for (const name of ['TRUST_PROXY', 'OPS_PROXIES'] as const)
    if (!listOf(textOf(name)).every((range) => isAddressRange(range)))
      yield `${name} must be a comma-separated list of IP addresses or CIDR ranges`
  if (!listOf(textOf('OPS_GROUPS')).every((entry) => roles.some((role) => entry.endsWith(`:${role}`))))
    yield `OPS_GROUPS must be a comma-separated list of groups with a role each: sre:${roles.join(', sre:')}`
  if ((textOf('OPS_PROXIES') === '') !== (textOf('OPS_GROUPS') === ''))
    yield 'OPS_PROXIES and OPS_GROUPS need each other: without a role an operator may do nothing'
  const origins = listOf(textOf('CORS_ORIGINS'))
  if (!origins.every(isOriginEntry))
    yield 'CORS_ORIGINS must be a comma-separated list of origins as browsers send them: https://app.example.com, without a slash at the end, or https://*.preview.example.com with * for one label'
  if (textOf('SESSION_COOKIE') === 'true' && origins.some((origin) => origin.includes('*')))
    yield 'CORS_ORIGINS must name each origin where SESSION_COOKIE is true: whoever gets a host below a * could use the cookies of others'
  if (!isIssuer(textOf('ISSUER')))
    yield 'ISSUER must be a name, or an https URL (http only for the loopback) with a path of letters, digits and ._~- at most, and without a slash at the end'
  if (!listOf(textOf('TOKEN_CLAIMS')).every((name) => optionalClaimNames.some((known) => known === name)))
    yield `TOKEN_CLAIMS must be a comma-separated list of ${optionalClaimNames.join(' and ')}`
  yield* mailProblemsIn(env)
  if (!isLoopback(textOf('OPS_HOST'))) {
    const password = textOf('OPS_PASSWORD')
    const hasOthers = textOf('OPS_OPERATORS_FILE') + textOf('OPS_PROXIES') !== ''
    if (password === '' && !hasOthers)
      yield 'OPS_HOST is open to others and OPS_PASSWORD is not set: set it, OPS_OPERATORS_FILE or OPS_PROXIES, or listen on 127.0.0.1'
    else if (password !== '' && (lengthOf(password) < OPERATOR_PASSWORD_LENGTH || isCommon(password)))
      yield `OPS_HOST is open to others and OPS_PASSWORD can be guessed: it must have ${OPERATOR_PASSWORD_LENGTH} characters and be no common password`
  }
  const { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl } = env
  if (databaseUrl) yield* problemOf(() => connectionTo(databaseUrl))
  if (redisUrl) yield* problemOf(() => parseRedisUrl(redisUrl))
  for (const variable of ['SPILLWAY_SEAL_KEYS', 'SERVICE_KEYS']) {
    const list = env[variable]
    if (list) yield* problemOf(() => refuseGuessableKeys(variable, list))
  }
}

function* problemOf(check: () => unknown): Generator<string> {
  try {
    check()
  } catch (error) {
    yield error instanceof Error ? error.message : String(error)
  }
}

/** Values are not shown, because SMTP_URL contains a password. */
function* mailProblemsIn(env: NodeJS.ProcessEnv): Generator<string> {
  const { SMTP_URL = '', MAIL_FROM = '', LOGIN_NEEDS_CONFIRMATION = '' } = env
  if (SMTP_URL === '') {
    if (LOGIN_NEEDS_CONFIRMATION === 'true')
      yield 'LOGIN_NEEDS_CONFIRMATION needs SMTP_URL: without mail no address can be confirmed'
    return
  }
  yield* problemOf(() => parseSmtpUrl(SMTP_URL))
  if (parseSender(MAIL_FROM) === undefined)
    yield 'MAIL_FROM must be an address, or a name and an address: Shop <no-reply@example.com>'
  for (const name of ['MAIL_CONFIRM_URL', 'MAIL_RESET_URL']) {
    const link = env[name] ?? ''
    if (!/^https?:\/\//.test(link) || !link.includes('{token}') || !URL.canParse(link))
      yield `${name} must be the URL of a page with {token} in it: https://app.example.com/confirm#{token}`
  }
}

/** `*` as the first label of a host, followed by two labels or more, or by `localhost`. */
const WILDCARD = /^(https?:\/\/)\*\.((?:[^.]+\.)+[^.]+|localhost(?::\d+)?)$/
/**
 * The origin of an application's own scheme, such as `capacitor://localhost`. URL has no origin
 * for it (WHATWG URL, 4.7), and browsers send it as it is written. A mistyped `https`, or a scheme
 * with rules in URL, is not the scheme of an application.
 */
const OWN_SCHEME = /^(?!h[htps]*:|wss?:|ftp:|file:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\*]+$/

/** Whether a text is an origin as browsers send it (RFC 6454, 6.2), or starts with a `*` label. */
function isOriginEntry(text: string): boolean {
  const origin = text.replace(WILDCARD, '$1any.$2')
  if (OWN_SCHEME.test(origin)) return URL.canParse(origin)
  const isOfPages = /^https?:[^*]+$/.test(origin) && URL.canParse(origin)
  return isOfPages && new URL(origin).origin === origin
}

/** Whether a text is a name, or a URL as verifiers compare it: byte by byte. */
function isIssuer(text: string): boolean {
  if (!text.includes(':')) return true
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:\/\/[^/@]+(\/[\w.~-]+)*$/.test(text) || url.href.replace(/\/$/, '') !== text)
    return false
  return url.protocol === 'https:' || isLoopback(url.hostname)
}
