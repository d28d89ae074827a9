/** Operations of the public API, and what they and its routes are made of. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import type { PasswordClient } from '@spillway/queue/queue-client'
import type { Audit } from '../audit/recorder.js'
import type { AuditEvent, AuditEventName } from '../audit/store.js'
import type { Post } from '../mail/post.js'
import { ApiError } from '../plugins/errors.js'
import type { Guessing } from '../plugins/guessing/guessing.js'
import type { OptionalClaim, TokenIssuer } from '../sessions/access-token.js'
import type { SessionOpener } from '../sessions/session-opening.js'
import type { Sessions } from '../sessions/sessions.js'
import type { SigningKeys } from '../sessions/signing-keys.js'
import type { TokenCarrier } from '../sessions/token-carrier.js'
import type { Credentials } from './credentials.js'
import type { HashUpgrades } from './hash-upgrades.js'
import type { NewPasswords } from './new-password.js'
import { type ClientJob, isTicketEnd, Operation, type OperationDefinition } from './operation.js'

export interface Deps {
  database: Database
  passwords: PasswordClient
  keys: SigningKeys
  issuer: string
  tokenClaims: readonly OptionalClaim[]
  log: Pick<Logger, 'info'>
  audit: Audit
  /** Undefined where no mail is sent. */
  post: Post | undefined
  isDraining(): boolean
  sessions: Sessions
  sessionOpener: SessionOpener
  tokenIssuer: TokenIssuer
  newPasswords: NewPasswords
  upgrades: HashUpgrades
  guessing: Guessing
  tokenCarrier: TokenCarrier
  credentials: Credentials
  /** Whether the old system is asked about accounts that are not here, or came without a hash. */
  asksOldSystem: boolean
}

/** A plugin with routes, whose types of requests and responses come from their JSON schemas. */
export type RoutePlugin = FastifyPluginAsyncJsonSchemaToTs<{ Options: Deps }>

type Definition<Caller, Body, Contents extends object, Answer> = Omit<
  OperationDefinition<Deps, Caller, Body, Contents, Answer>,
  'unsupportedHash' | 'ended'
> & {
  kind: AuditEventName
  /** Whom the audit names, the account and session, and the standing of a login. */
  concerns(
    contents: NoInfer<Contents>,
    job: ClientJob,
    succeeded: boolean,
  ): Pick<AuditEvent, 'userId' | 'sessionId' | 'isKnownDevice' | 'failures'>
  /** Called after a wrong password, also where no worker verifies the stored hash. */
  failed?(deps: Deps, contents: Contents): void
}

/**
 * Defines an operation whose ends the audit records. An unsupported stored hash is answered like a
 * wrong password, which does not reveal the account; metrics and logs tell operators.
 */
export function defineOperation<Caller, Body, Contents extends object, Answer>(
  definition: Definition<Caller, Body, Contents, Answer>,
): Operation<Deps> {
  const unsupportedHash = () => new ApiError('invalid_credentials', { reason: 'unsupported_hash' })
  function record({ audit }: Deps, contents: Contents, job: ClientJob, refused?: ApiError): void {
    const outcome = refused === undefined ? 'ok' : (refused.reason ?? refused.code)
    const { failures, ...whom } = definition.concerns(contents, job, refused === undefined)
    // What ended without a verdict is no failure.
    const standing = failures === undefined || refused?.code !== 'invalid_credentials' ? {} : { failures }
    const { client, requestId } = job
    audit.record({ event: definition.kind, outcome, ip: client.ip, requestId, ...whom, ...standing })
  }
  return new Operation({
    ...definition,
    unsupportedHash,
    ended(deps, contents, job, refused) {
      if (refused?.code === 'invalid_credentials') definition.failed?.(deps, contents)
      // Ends of tickets are recorded below.
      if (refused === undefined || !isTicketEnd(refused)) record(deps, contents, job, refused)
    },
    unanswered(deps, contents, job, end) {
      definition.unanswered?.(deps, contents, job, end)
      record(deps, contents, job, end)
    },
  })
}
