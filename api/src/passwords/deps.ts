/** What endpoints and routes use of a gateway. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Logger } from '@spillway/common/log'
import type { Tracing } from '@spillway/common/tracing'
import type { Database } from '@spillway/prisma'
import type { Keyring, PasswordClient, RedisConnection, RedisWatch } from '@spillway/queue/client'
import type { QueueReporter } from '@spillway/queue/report'
import type { Audit } from '../audit/recorder.js'
import type { AuditEvent, AuditEventName } from '../audit/store.js'
import type { Failures } from '../limits/attempts.js'
import type { Blocks } from '../limits/blocks.js'
import type { CountingRedis } from '../limits/counts.js'
import type { Guessing } from '../limits/guessing.js'
import type { Limits } from '../limits/limits.js'
import type { Post } from '../mail/post.js'
import type { GatewayMetrics } from '../ops/metrics.js'
import type { NamedOperators } from '../ops/named.js'
import type { OverloadGuard } from '../overload/guard.js'
import type { AccessTokenOptions, OptionalClaim, TokenIssuer } from '../sessions/access-token.js'
import type { SessionOpener } from '../sessions/session-opening.js'
import type { Sessions } from '../sessions/sessions.js'
import type { SigningKeys } from '../sessions/signing-keys.js'
import type { TokenCarrier } from '../sessions/token-carrier.js'
import type { PasswordList } from './breached-list.js'
import type { Ending } from './endpoint.js'
import type { HashUpgrades } from './hash-upgrades.js'
import type { Credentials } from './login.js'
import type { NewPasswords } from './new-password.js'

/** What start.ts opens, for all servers. */
export interface Opened {
  isDraining(): boolean
  metrics: GatewayMetrics
  guard: OverloadGuard
  /** How long a refusal, or a ticket that is issued at once, is held, up to `holdMs` [pacedMs]. */
  paceMs: ((holdMs: number) => number) | undefined
  tracing: Tracing | undefined
  log: Logger
  watch: RedisWatch
  database: Database
  passwords: PasswordClient
  keyring: Keyring
  countingRedis: CountingRedis
  /** For requests of operators: long reads must not delay logins. */
  operatorsRedis: RedisConnection
  reporter: QueueReporter
  keys: SigningKeys
  accessTokens: AccessTokenOptions
  tokenIssuer: TokenIssuer
  tokenClaims: readonly OptionalClaim[]
  sessions: Sessions
  sessionOpener: SessionOpener
  failures: Failures
  audit: Audit
  blocks: Blocks
  /** Undefined if no mail is sent. */
  post: Post | undefined
  breached: PasswordList | undefined
  namedOperators: NamedOperators | undefined
}

/** For the endpoints and routes of the public API. */
export interface Deps extends Opened {
  issuer: string
  newPasswords: NewPasswords
  upgrades: HashUpgrades
  guessing: Guessing
  limits: Limits
  isRegistrationOpen: boolean
  tokenCarrier: TokenCarrier
  credentials: Credentials
}

/** A plugin with routes. Types of requests and responses come from their JSON schemas. */
export type RoutePlugin = FastifyPluginAsyncJsonSchemaToTs<{ Options: Deps }>

/** The account of an event, and the counts of a login. */
export interface AuditSubject {
  userId?: string | null
  sessionId?: string
  isKnownDevice?: boolean
  failures?: number
}

/** Records how a request ended: with an answer, or with the end of its ticket. */
export function recordEnding(
  { audit, log }: { audit: Pick<Audit, 'record'>; log: Pick<Logger, 'error'> },
  event: AuditEventName,
  ending: Ending,
  subject: AuditSubject,
): void {
  const { kind, error, client, requestId } = ending
  if (kind === 'unanswered' && error === undefined) return
  const outcome: AuditEvent['outcome'] = error === undefined ? 'ok' : (error.reason ?? error.code)
  audit.record({ event, outcome, ip: client.ip, requestId, ...subject })
  if (outcome === 'unsupported_hash')
    log.error({ userId: subject.userId, requestId }, 'no worker verifies the stored hash of this account')
}
