/** The dependencies of the endpoints and routes of the public API. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import type { Keyring, PasswordClient } from '@spillway/queue/client'
import type { Audit } from '../audit/recorder.js'
import type { AuditEvent, AuditEventName } from '../audit/store.js'
import type { Failures } from '../limits/attempts.js'
import type { Guessing } from '../limits/guessing.js'
import type { Limits } from '../limits/limits.js'
import type { Post } from '../mail/post.js'
import type { OptionalClaim, TokenIssuer } from '../sessions/access-token.js'
import type { SessionOpener } from '../sessions/session-opening.js'
import type { Sessions } from '../sessions/sessions.js'
import type { SigningKeys } from '../sessions/signing-keys.js'
import type { TokenCarrier } from '../sessions/token-carrier.js'
import type { Credentials } from './credentials.js'
import type { Ending } from './endpoint.js'
import type { HashUpgrades } from './hash-upgrades.js'
import type { NewPasswords } from './new-password.js'

export interface Deps {
  database: Database
  keyring: Keyring
  passwords: PasswordClient
  keys: SigningKeys
  issuer: string
  tokenClaims: readonly OptionalClaim[]
  log: Logger
  audit: Audit
  /** Undefined if no mail is sent. */
  post: Post | undefined
  isDraining(): boolean
  sessions: Sessions
  sessionOpener: SessionOpener
  tokenIssuer: TokenIssuer
  newPasswords: NewPasswords
  upgrades: HashUpgrades
  guessing: Guessing
  failures: Failures
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
