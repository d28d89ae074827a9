/** A gateway's configuration: every setting with its default, bounds and meaning. */

import { readSettings } from '@spillway/common/read-settings'
import {
  boolean,
  choice,
  commonSettings,
  httpUrl,
  integer,
  notEmpty,
  ports,
  required,
  secret,
  text,
} from '@spillway/common/settings'
import { queueSettings } from '@spillway/queue/settings'
import { rehashModes } from '@spillway/queue/wire/stored-hash'
import type { FromSchema } from 'json-schema-to-ts'
import { contradictionsIn } from './config-rules.js'

/** The JSON Schema of the environment. `pnpm size` calculates with its defaults. */
export const GatewayConfig = {
  type: 'object',
  properties: {
    HOST: text('127.0.0.1', 'Interface of the public API'),
    PORT: integer(3000, ports, 'Port of the public API; 0 takes any free port'),
    OPS_HOST: text('127.0.0.1', 'Interface of the ops port'),
    OPS_PORT: integer(9464, ports, 'Port of `/metrics`, the live page, Bull Board and the audit'),
    DATABASE_URL: secret(required('PostgreSQL; `?pgbouncer=true` behind PgBouncer')),
    DATABASE_POOL_SIZE: integer(
      10,
      [1, 1_000],
      'Connections to PostgreSQL; a login uses one for two short queries, and holds no connection while it waits',
    ),
    ...queueSettings,
    ...commonSettings,
    SPILLWAY_JWT_KEYS: secret(
      required(
        'Keys that sign access tokens: `kid:base64` or `base64` of an Ed25519, P-256 or RSA private key (PKCS#8 DER), comma-separated; the first signs, all verify',
      ),
    ),
    ISSUER: text(
      'spillway',
      'Issuer of access tokens: the public URL of this API, which verifiers are configured with; any other name turns discovery off',
      notEmpty,
    ),
    JWT_AUDIENCE: text(
      'spillway',
      'Audience of access tokens; services that accept them must require the same',
      notEmpty,
    ),
    TOKEN_CLAIMS: text('', 'Additional claims of access tokens: `email`, `email_verified`, comma-separated'),
    ACCESS_TOKEN_TTL_S: integer(900, [1, 86_400], 'Life of an access token'),
    SESSION_TTL_S: integer(30 * 24 * 3_600, [1, 365 * 24 * 3_600], 'How long refreshing keeps a session alive'),
    SESSION_IDLE_S: integer(
      14 * 24 * 3_600,
      [1, 365 * 24 * 3_600],
      'A session that is not refreshed for this long ends; at least `ACCESS_TOKEN_TTL_S`, so that no access token outlives it',
    ),
    REFRESH_GRACE_S: integer(
      10,
      [0, 300],
      'How long a replaced refresh token returns its successor again; 0 for not at all',
    ),
    SESSION_COOKIE: boolean(
      false,
      'Whether refresh and device tokens are cookies, which no script reads, instead of fields: for pages of this origin, or of `CORS_ORIGINS` on the same site',
    ),
    LOGIN_WAIT_MS: integer(
      8_000,
      [0, 300_000],
      'How long a request is held for its answer; also the most that `Prefer: wait` may ask for; at least 3 s less than `TICKET_TTL_MS`',
    ),
    TICKET_TTL_MS: integer(
      300_000,
      [3_000, 3_600_000],
      'How long a job may wait and its ticket be redeemed, from the request on',
    ),
    MAX_OUTSTANDING: integer(
      50_000,
      [1],
      'Jobs waiting or active beyond which new ones are refused, however fast the workers are: 2 kB of Redis each, 4.6 with the longest passwords; half as many tickets may be absent beside them',
    ),
    LIMIT_PER_ADDRESS: integer(
      300,
      [0],
      'Failed logins and other requests with credentials a minute from one address; 0 for no limit',
    ),
    LIMIT_PER_ACCOUNT: integer(20, [0], 'Credential requests a minute on one account; 0 for no limit'),
    GUESSES_PER_ACCOUNT: integer(
      100,
      [0, 1_000_000],
      'Consecutive failures on one account, by all unknown devices, before each login needs a challenge; logins are delayed from a tenth of them on; NIST SP 800-63B-4, 3.2.2, allows 100; 0 for no limit',
    ),
    GUESSES_PER_DEVICE: integer(10, [1, 100], 'Consecutive failures of a known device before it counts as unknown'),
    DEVICE_TTL_S: integer(90 * 24 * 3_600, [60, 400 * 24 * 3_600], 'How long a device is known after its last login'),
    CHALLENGE_BITS: integer(
      18,
      [1, 24],
      'Zero bits of the proof of work: 18 take some 260,000 digests, each further bit doubles them',
    ),
    CHALLENGE_VERIFY_URL: text(
      '',
      'A challenge of another service instead of proof of work: the URL that verifies its tokens (`siteverify` of Turnstile, hCaptcha, reCAPTCHA)',
      httpUrl,
    ),
    CHALLENGE_SECRET: secret(text('', 'Our secret at that service')),
    CHALLENGE_SITE_KEY: text('', 'The site key of that service, for clients'),
    LIMIT_REFRESH_PER_ADDRESS: integer(
      3_000,
      [0],
      'Refreshes and logouts a minute from one address: enough for a company of 40,000; made-up tokens do not count; 0 for no limit',
    ),
    LIMIT_REFRESH_PER_SESSION: integer(
      60,
      [0],
      'Refreshes a minute of one session: enough for many tabs; 0 for no limit',
    ),
    LIMIT_REDEEM_PER_ADDRESS: integer(
      30_000,
      [0],
      'Redemptions a minute from one address: enough for 2,500 people who redeem every 5 s; made-up tickets do not count; 0 for no limit',
    ),
    SERVICE_KEYS: secret(
      text(
        '',
        'Keys of the service API, which is off without keys: `name:base64` of 32 bytes for each application, comma-separated; a name may have several, for rotation',
      ),
    ),
    SERVICE_HOST: text('127.0.0.1', 'Interface of the service API'),
    SERVICE_PORT: integer(3100, ports, 'Port of the service API'),
    LIMIT_PER_SERVICE: integer(
      0,
      [0],
      'Requests a minute from one application, and separately redemptions of its tickets; 0 for no limit',
    ),
    REQUEST_TIMEOUT_MS: integer(
      30_000,
      [1_000, 300_000],
      'How long a request may take to arrive, body included, and how long a client may read nothing of its answer',
    ),
    KEEP_ALIVE_S: integer(
      72,
      [1, 3_600],
      'How long a connection without a request stays open; longer than a load balancer in front keeps it (AWS: 60, Google Cloud: 600), which else gets a reset',
    ),
    TRUST_PROXY: text(
      '',
      'Proxies whose `X-Forwarded-For` and `X-Request-Id` are believed: addresses or CIDR ranges, comma-separated',
    ),
    CORS_ORIGINS: text(
      '',
      'Origins of pages that may use the API from a browser, comma-separated: `https://app.example.com`, `capacitor://localhost`; in `https://*.preview.example.com` the `*` is one label, and refused with `SESSION_COOKIE`',
    ),
    REGISTRATION: choice('open', ['open', 'closed'], 'Whether anyone may register'),
    SMTP_URL: secret(
      text(
        '',
        'Mail server, with user and password if required: `smtps://`, or `smtp://`, which beyond the loopback needs STARTTLS or `?starttls=optional`; `?name=` for the greeting, by default the domain of `MAIL_FROM`; empty for no mail',
      ),
    ),
    MAIL_FROM: text('', 'Sender of mails: `Shop <no-reply@example.com>`'),
    MAIL_CONFIRM_URL: text(
      '',
      'Page of the application that confirms an address; `{token}` is replaced; after a `#` the token reaches no server, log or Referer',
    ),
    MAIL_RESET_URL: text('', 'Page of the application that sets a new password; `{token}` is replaced'),
    MAIL_TEXTS: text('', 'Folder of texts that replace the built-in ones'),
    MAIL_CONFIRM_TTL_S: integer(24 * 3_600, [60, 7 * 24 * 3_600], 'How long a link that confirms an address works'),
    MAIL_RESET_TTL_S: integer(1_800, [60, 24 * 3_600], 'How long a link that sets a new password works'),
    LIMIT_MAIL_PER_RECIPIENT: integer(5, [0], 'Mails an hour to one address, from all askers together; 0 for no limit'),
    LIMIT_MAIL_PER_NETWORK: integer(100, [0], 'Requests for mail an hour from one network; 0 for no limit'),
    LEGACY_VERIFY: boolean(
      false,
      'Whether workers may ask the old system (their `LEGACY_VERIFY_URL`) at the first login of an account that is not here yet or was imported without a hash',
    ),
    LOGIN_NEEDS_CONFIRMATION: boolean(false, 'Whether an account logs in only once its address is confirmed'),
    PASSWORD_MIN_LENGTH: integer(
      8,
      [8, 64],
      'Characters of a new password; NIST SP 800-63B-4, 3.1.1.2: 15 if it is the only factor, else 8',
    ),
    BREACHED_PASSWORDS_FILE: text(
      '',
      'List of breached passwords that are refused as new ones, made by `pnpm accounts breached build`; without it only common ones are refused',
    ),
    REHASH: choice(
      'weaker',
      rehashModes,
      "Which stored hashes a login replaces, after its answer: `weaker` hashes below the workers' policy, `always` any other algorithm or cost, `never` no hash",
    ),
    AUDIT_RETENTION_DAYS: integer(90, [0, 3_650], 'How long audit events are kept; 0 records nothing'),
    OPS_USER: text('operator', 'User of the ops port', notEmpty),
    OPS_PASSWORD: secret(
      text(
        '',
        'Password of that user, an admin, whom no worker verifies: for small sites, and for when no worker is alive or the queue is paused; beyond the loopback it needs 12 characters',
      ),
    ),
    OPS_OPERATORS_FILE: text(
      '',
      'File of operators with their roles and hashes, made by `pnpm accounts operator`; a change counts at once. Without it, `OPS_PASSWORD` and `OPS_PROXIES` the ops port must be on the loopback interface',
    ),
    OPS_PROXIES: text(
      '',
      'Proxies whose `X-Forwarded-User` and `X-Forwarded-Groups` name the operator, as oauth2-proxy sends them: addresses or CIDR ranges, comma-separated; from others they are ignored',
    ),
    OPS_GROUPS: text(
      '',
      'Roles of the groups that these proxies send, comma-separated: `sre:admin,helpdesk:support,staff:viewer`',
    ),
    OPS_BASE_PATH: text(
      '',
      'Path of the ops pages at a reverse proxy, such as `/ops`; the proxy may pass it on or strip it',
      { pattern: '^(/(?!\\.)[\\w.~-]+)*$' },
    ),
    OPS_LOG_URL: text('', 'URL of a log search with `{jobId}` in it, to which each job on the board links', {
      pattern: '^(https?://.*\\{jobId\\}.*)?$',
    }),
    LOCAL_FALLBACK_CONCURRENCY: integer(
      0,
      [0, 1_024],
      'Jobs at a time of the fallback worker, which this gateway starts while no worker is alive; 0 for no fallback',
    ),
    DRAIN_MS: integer(
      0,
      [0, 300_000],
      'How long a gateway still answers after SIGTERM, closing each connection with its answer, while `/readyz` fails and load balancers notice; SIGINT ends it',
    ),
  },
  required: ['DATABASE_URL', 'SPILLWAY_SEAL_KEYS', 'SPILLWAY_JWT_KEYS'],
  additionalProperties: false,
} as const
export type GatewayConfig = FromSchema<typeof GatewayConfig>

/** Reads the environment once. Throws one error that names every invalid variable, no values. */
export function readGatewayConfig(env: NodeJS.ProcessEnv): GatewayConfig {
  return readSettings<GatewayConfig>(GatewayConfig, env, (texts) => contradictionsIn(texts, GatewayConfig.properties))
}
