/** A gateway's configuration: every name, its default, and its bounds. */
import { isIP } from 'node:net'
import { rehashModes } from '@spillway/client/protocol/stored-hash'
import { DEFAULT_QUEUE_PREFIX, refuseGuessableKeys } from '@spillway/client/queue-client'
import { envSchema } from 'env-schema'
import type { FromSchema } from 'json-schema-to-ts'
import { isCommon } from './operations/new-password.js'

/** The JSON Schema of the environment. `pnpm size` calculates with its defaults. */
export const GatewayConfig = {
  type: 'object',
  properties: {
    HOST: { type: 'string', default: '127.0.0.1' },
    PORT: { type: 'integer', default: 3000, minimum: 0, maximum: 65_535 },
    /** Where /metrics is served, apart from the public port. */
    OPS_HOST: { type: 'string', default: '127.0.0.1' },
    OPS_PORT: { type: 'integer', default: 9464, minimum: 0, maximum: 65_535 },
    DATABASE_URL: { type: 'string' },
    /** A login uses a connection for two short queries and none while it waits, so a few serve thousands a second. */
    DATABASE_POOL_SIZE: { type: 'integer', default: 10, minimum: 1, maximum: 1_000 },
    /** redis://, redis+sentinel:// or redis+cluster://, with rediss for TLS; several separated by white space, see redis/shards.ts. */
    REDIS_URL: { type: 'string', default: 'redis://127.0.0.1:6379' },
    /** Must be the same at gateways and workers, and in the autoscaler's key. */
    QUEUE_PREFIX: { type: 'string', default: DEFAULT_QUEUE_PREFIX, pattern: '^\\{[\\w-]+\\}$' },
    /** kid:base64 of 32 bytes, comma-separated; the first seals, all open. */
    SPILLWAY_SEAL_KEYS: { type: 'string' },
    /** kid:base64 of an Ed25519 private key (PKCS#8 DER), comma-separated; the first signs, all verify. */
    SPILLWAY_JWT_KEYS: { type: 'string' },
    JWT_ISSUER: { type: 'string', default: 'spillway', minLength: 1 },
    /** The audience of access tokens; services that accept them must require the same. */
    JWT_AUDIENCE: { type: 'string', default: 'spillway', minLength: 1 },
    ACCESS_TOKEN_TTL_S: { type: 'integer', default: 900, minimum: 1, maximum: 86_400 },
    /** How long a session can be kept alive by refreshing. */
    SESSION_TTL_S: { type: 'integer', default: 30 * 24 * 3_600, minimum: 1, maximum: 365 * 24 * 3_600 },
    /** A session that is not refreshed for so long ends, in seconds. At least ACCESS_TOKEN_TTL_S, so that no access token outlives it. */
    SESSION_IDLE_S: { type: 'integer', default: 14 * 24 * 3_600, minimum: 1, maximum: 365 * 24 * 3_600 },
    /** How long a replaced refresh token returns its successor again, in seconds; 0 for not at all. */
    REFRESH_GRACE_S: { type: 'integer', default: 10, minimum: 0, maximum: 300 },
    /**
     * How long a request is held for its answer, in milliseconds; also the most that `Prefer: wait` may ask for. At least 3 s
     * less than TICKET_TTL_MS.
     */
    LOGIN_WAIT_MS: { type: 'integer', default: 8_000, minimum: 0, maximum: 300_000 },
    /** How long a job may wait and its ticket be redeemed, in milliseconds from the request. */
    TICKET_TTL_MS: { type: 'integer', default: 60_000, minimum: 3_000, maximum: 3_600_000 },
    /** Jobs waiting or active beyond which new ones are refused, whatever the workers could do. */
    MAX_OUTSTANDING: { type: 'integer', default: 10_000, minimum: 1 },
    /** Credential requests a minute from one address and on one account; 0 turns a limit off. */
    LIMIT_PER_ADDRESS: { type: 'integer', default: 300, minimum: 0 },
    LIMIT_PER_ACCOUNT: { type: 'integer', default: 20, minimum: 0 },
    /**
     * Consecutive failures on one account of all devices that never logged in to it, before each login takes a challenge; they are delayed
     * from a tenth of them on. NIST SP 800-63B-4, 3.2.2, allows 100. 0 holds nothing back.
     */
    GUESSES_PER_ACCOUNT: { type: 'integer', default: 100, minimum: 0, maximum: 1_000_000 },
    /** Consecutive failures of a device that has logged in to the account, before it counts as unknown. */
    GUESSES_PER_DEVICE: { type: 'integer', default: 10, minimum: 1, maximum: 100 },
    /** How long a device is known after its last login, in seconds. */
    DEVICE_TTL_S: { type: 'integer', default: 90 * 24 * 3_600, minimum: 60, maximum: 400 * 24 * 3_600 },
    /** Whether a login also sets the device token as a cookie: for browsers on the same site. */
    DEVICE_COOKIE: { type: 'boolean', default: false },
    /** Zero bits that the proof of work begins with: 18 take some 260,000 digests, each further one twice as many. */
    CHALLENGE_BITS: { type: 'integer', default: 18, minimum: 1, maximum: 24 },
    /**
     * Another service's challenge in place of proof of work: where its tokens are verified (`siteverify` of Turnstile, hCaptcha, reCAPTCHA), our
     * secret there, and the site key for clients.
     */
    CHALLENGE_VERIFY_URL: { type: 'string', default: '', pattern: '^(https?://.+)?$' },
    CHALLENGE_SECRET: { type: 'string', default: '' },
    CHALLENGE_SITE_KEY: { type: 'string', default: '' },
    /** Refreshes and logouts a minute from one address, enough for a company of 40,000; refreshes of one session, enough for many tabs. */
    LIMIT_REFRESH_PER_ADDRESS: { type: 'integer', default: 3_000, minimum: 0 },
    LIMIT_REFRESH_PER_SESSION: { type: 'integer', default: 60, minimum: 0 },
    /** Redemptions a minute from one address: enough for a hundred tickets that are asked for every second. */
    LIMIT_REDEEM_PER_ADDRESS: { type: 'integer', default: 6_000, minimum: 0 },
    /**
     * The service API, for applications that keep their own users: on if there are keys, `name:base64` of 32 bytes for each application,
     * comma-separated. A name may have several keys, for rotation.
     */
    SERVICE_KEYS: { type: 'string', default: '' },
    SERVICE_HOST: { type: 'string', default: '127.0.0.1' },
    SERVICE_PORT: { type: 'integer', default: 3100, minimum: 0, maximum: 65_535 },
    /** Requests a minute from one application; 0 for no limit. */
    LIMIT_PER_SERVICE: { type: 'integer', default: 0, minimum: 0 },
    /**
     * How long a request may take to arrive, body included, and a client may take nothing of what is sent to it, in milliseconds; see
     * server-options.ts.
     */
    REQUEST_TIMEOUT_MS: { type: 'integer', default: 30_000, minimum: 1_000, maximum: 300_000 },
    /** Proxies whose X-Forwarded-For is believed: addresses or CIDR ranges, comma-separated. */
    TRUST_PROXY: { type: 'string', default: '' },
    /** Origins of pages that may use the API from a browser, comma-separated: https://app.example.com. None by default. */
    CORS_ORIGINS: { type: 'string', default: '' },
    /** Whether anyone may register. */
    REGISTRATION: { type: 'string', default: 'open', enum: ['open', 'closed'] },
    /**
     * Mail is on where there is a server: smtp:// or smtps://, with user and password if it wants them. smtp beyond the loopback needs
     * STARTTLS, or `?starttls=optional`.
     */
    SMTP_URL: { type: 'string', default: '' },
    /** The sender: `Shop <no-reply@example.com>`. */
    MAIL_FROM: { type: 'string', default: '' },
    /** Pages of the application to which links lead; {token} is replaced. After a # it reaches no server, log or Referer. */
    MAIL_CONFIRM_URL: { type: 'string', default: '' },
    MAIL_RESET_URL: { type: 'string', default: '' },
    /** A folder of texts in place of the built-in ones; see mail/texts.ts. */
    MAIL_TEXTS: { type: 'string', default: '' },
    /** How long a link is good for, in seconds. */
    MAIL_CONFIRM_TTL_S: { type: 'integer', default: 24 * 3_600, minimum: 60, maximum: 7 * 24 * 3_600 },
    MAIL_RESET_TTL_S: { type: 'integer', default: 1_800, minimum: 60, maximum: 24 * 3_600 },
    /** Mails an hour to one address, from whomever: more are not sent. Requests an hour for mail from one network. 0 turns a limit off. */
    LIMIT_MAIL_PER_RECIPIENT: { type: 'integer', default: 5, minimum: 0 },
    LIMIT_MAIL_PER_NETWORK: { type: 'integer', default: 100, minimum: 0 },
    /** Whether an account logs in only once its address is confirmed. */
    LOGIN_NEEDS_CONFIRMATION: { type: 'boolean', default: false },
    /** Characters of a new password. NIST SP 800-63B-4, 3.1.1.2: 15 if it is the only factor, else 8. */
    PASSWORD_MIN_LENGTH: { type: 'integer', default: 8, minimum: 8, maximum: 64 },
    /** A list of breached passwords that new ones must not be in, as `pnpm breached build` makes it; empty for the common ones alone. */
    BREACHED_PASSWORDS_FILE: { type: 'string', default: '' },
    /**
     * Which stored hashes a login replaces, after its answer: `always` those of another algorithm or cost than the policy of the workers,
     * stronger ones as well, `weaker` those below it.
     */
    REHASH: { type: 'string', default: 'weaker', enum: rehashModes },
    /** How long audit events are kept; 0 turns the audit off. */
    AUDIT_RETENTION_DAYS: { type: 'integer', default: 90, minimum: 0, maximum: 3_650 },
    /** The operators' credentials on the ops port. Without a password it must be on the loopback interface; beyond it, 12 characters. */
    OPS_USER: { type: 'string', default: 'operator', minLength: 1 },
    OPS_PASSWORD: { type: 'string', default: '' },
    /** Whether operators may retry and remove jobs and pause the queue. */
    OPS_ALLOW_WRITES: { type: 'boolean', default: false },
    /** The URL of a log search with {jobId} in it, to which each job on the board links. */
    OPS_LOG_URL: { type: 'string', default: '', pattern: '^(https?://.*\\{jobId\\}.*)?$' },
    /** The collector of traces, by OTLP over HTTP; empty for none. The SDK reads the other OTEL_ variables itself. */
    OTEL_EXPORTER_OTLP_ENDPOINT: { type: 'string', default: '', pattern: '^(https?://.+)?$' },
    /** Jobs at a time of the fallback worker, which this gateway starts while no worker is alive; 0 for none. */
    LOCAL_FALLBACK_CONCURRENCY: { type: 'integer', default: 0, minimum: 0, maximum: 1_024 },
    /** How long /readyz fails before a stopping gateway stops listening, so that balancers notice, in milliseconds. */
    DRAIN_MS: { type: 'integer', default: 0, minimum: 0, maximum: 300_000 },
    LOG_LEVEL: { type: 'string', default: 'info', pattern: '^(fatal|error|warn|info|debug|trace|silent)$' },
  },
  required: ['DATABASE_URL', 'SPILLWAY_SEAL_KEYS', 'SPILLWAY_JWT_KEYS'],
  additionalProperties: false,
} as const
export type GatewayConfig = FromSchema<typeof GatewayConfig>

/** The shortest life of a ticket after the longest wait, in milliseconds: enough for a client to redeem it a second later. */
const TIME_TO_REDEEM_MS = 3_000

/** For an ops port beyond the loopback interface: the password is shared, and seldom changed. */
const OPS_PASSWORD_MIN_LENGTH = 12

/** Reads the environment once. Throws one error that names every invalid variable, without values. */
export function readGatewayConfig(env: NodeJS.ProcessEnv): GatewayConfig {
  const problems = contradictionsIn(env)
  try {
    const config = envSchema<GatewayConfig>({ schema: GatewayConfig, data: env, env: false })
    if (problems.length === 0) return config
  } catch (error) {
    problems.unshift(error instanceof Error ? error.message : String(error))
  }
  throw new Error(problems.join('; '))
}

/** Rules that the schema cannot express. Reads the raw texts, so that its errors are reported together with the schema's. */
function contradictionsIn(env: NodeJS.ProcessEnv): string[] {
  const { LOGIN_WAIT_MS, TICKET_TTL_MS, TRUST_PROXY, OPS_PASSWORD, OPS_HOST } = GatewayConfig.properties
  const { ACCESS_TOKEN_TTL_S, SESSION_IDLE_S } = GatewayConfig.properties
  const waitMs = Number(env.LOGIN_WAIT_MS ?? LOGIN_WAIT_MS.default)
  const ticketMs = Number(env.TICKET_TTL_MS ?? TICKET_TTL_MS.default)
  const problems: string[] = []
  if (waitMs + TIME_TO_REDEEM_MS > ticketMs)
    problems.push(
      `LOGIN_WAIT_MS must be ${TIME_TO_REDEEM_MS} ms or more below TICKET_TTL_MS: a ticket that is given after the wait must leave time to redeem it`,
    )
  if (
    Number(env.SESSION_IDLE_S ?? SESSION_IDLE_S.default) < Number(env.ACCESS_TOKEN_TTL_S ?? ACCESS_TOKEN_TTL_S.default)
  )
    problems.push('SESSION_IDLE_S must not be below ACCESS_TOKEN_TTL_S: an access token would outlive its session')
  if (!listOf(env.TRUST_PROXY ?? TRUST_PROXY.default).every(isAddressRange))
    problems.push('TRUST_PROXY must be a comma-separated list of IP addresses or CIDR ranges')
  if (!listOf(env.CORS_ORIGINS ?? '').every(isOrigin))
    problems.push(
      'CORS_ORIGINS must be a comma-separated list of origins as browsers send them: https://app.example.com, without a slash at the end',
    )
  problems.push(...mailProblemsIn(env))
  if (!isLoopback(env.OPS_HOST ?? OPS_HOST.default)) {
    const password = env.OPS_PASSWORD ?? OPS_PASSWORD.default
    if (password === '')
      problems.push('OPS_HOST is open to others and OPS_PASSWORD is not set: set a password, or listen on 127.0.0.1')
    else if ([...password].length < OPS_PASSWORD_MIN_LENGTH || isCommon(password))
      problems.push(
        `OPS_HOST is open to others and OPS_PASSWORD can be guessed: it must have ${OPS_PASSWORD_MIN_LENGTH} characters and be no common password`,
      )
  }
  if (env.CHALLENGE_VERIFY_URL && !(env.CHALLENGE_SECRET && env.CHALLENGE_SITE_KEY))
    problems.push('CHALLENGE_VERIFY_URL needs CHALLENGE_SECRET and CHALLENGE_SITE_KEY')
  for (const variable of ['SPILLWAY_SEAL_KEYS', 'SERVICE_KEYS']) {
    const list = env[variable]
    try {
      if (list) refuseGuessableKeys(variable, list)
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error))
    }
  }
  return problems
}

/** The entries of a comma-separated list; none for an empty one. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

/** Values are not shown: SMTP_URL holds a password. */
function mailProblemsIn(env: NodeJS.ProcessEnv): string[] {
  const problems: string[] = []
  const { SMTP_URL = '', MAIL_FROM = '', LOGIN_NEEDS_CONFIRMATION = '' } = env
  if (SMTP_URL === '') {
    if (LOGIN_NEEDS_CONFIRMATION === 'true')
      problems.push('LOGIN_NEEDS_CONFIRMATION needs SMTP_URL: without mail no address can be confirmed')
    return problems
  }
  const smtp = URL.canParse(SMTP_URL) ? new URL(SMTP_URL) : undefined
  if (smtp === undefined || !/^smtps?:$/.test(smtp.protocol) || smtp.hostname === '')
    problems.push('SMTP_URL must be a URL such as smtps://user:password@mail.example.com')
  if (!/^([^<>@\r\n]+ <[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/.test(MAIL_FROM))
    problems.push('MAIL_FROM must be an address, or a name and an address: Shop <no-reply@example.com>')
  for (const name of ['MAIL_CONFIRM_URL', 'MAIL_RESET_URL']) {
    const link = env[name] ?? ''
    if (!/^https?:\/\//.test(link) || !link.includes('{token}') || !URL.canParse(link))
      problems.push(`${name} must be the URL of a page with {token} in it: https://app.example.com/confirm#{token}`)
  }
  return problems
}

/** Whether a text is an origin as browsers send it (RFC 6454, 6.2): lower case, without the default port, a path or a slash at its end. */
function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) && url.origin === text
}

function isAddressRange(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/')
  const bits = isIP(address) === 6 ? 128 : 32
  const fits = prefix === undefined || (/^[1-9]\d{0,2}$/.test(prefix) && Number(prefix) <= bits)
  return isIP(address) !== 0 && fits && rest.length === 0
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
