/** Operations of the public API: those on accounts. */
import type { Database } from '@spillway/prisma'
import type { Audit, AuditEvent, AuditEventName } from '../audit/events.js'
import type { Guessing } from '../guessing/guessing.js'
import type { Post } from '../mail/post.js'
import { ApiError } from '../problems/errors.js'
import type { IssueTokens } from '../sessions/access-token.js'
import type { Sessions } from '../sessions/sessions.js'
import type { AnsweredJob } from '../waiting/hold.js'
import type { HashUpgrades } from './hash-upgrades.js'
import type { CheckNewPassword } from './new-password.js'
import { buildOperation, type Operation, type OperationDefinition } from './operation.js'

export interface OperationDeps {
  database: Database
  sessions: Sessions
  issueTokens: IssueTokens
  checkPassword: CheckNewPassword
  upgrades: HashUpgrades
  audit: Audit
  /** Undefined where no mail is sent. */
  post: Post | undefined
  guessing: Guessing
  /** Whether only accounts whose address is confirmed log in. */
  needsConfirmedEmail: boolean
  /** Whether the old system is asked about accounts that are not here yet, or came without a hash. */
  asksOldSystem: boolean
  /** The headers that give a device its token: a cookie, or none. */
  deviceHeaders(token: string): Record<string, string>
}

type Definition<Caller, Body, Contents extends object, Answer> = Omit<
  OperationDefinition<OperationDeps, Caller, Body, Contents, Answer>,
  'unsupportedHash' | 'ended'
> & {
  kind: AuditEventName
  /** Whom the audit names: the account, and the session that was opened or asks. */
  concerns(contents: Contents, job: AnsweredJob, succeeded: boolean): Pick<AuditEvent, 'userId' | 'sessionId'>
  /** Called after a wrong password, also where no worker verifies the stored hash. */
  failed?(deps: OperationDeps, contents: Contents): void
}

/**
 * Defines an operation. An unsupported stored hash is answered like a wrong password, so that it does not reveal the account; metrics
 * and logs tell operators. Each end of it is recorded by the audit.
 */
export function defineOperation<Caller, Body, Contents extends object, Answer>(
  definition: Definition<Caller, Body, Contents, Answer>,
): Operation<OperationDeps> {
  const unsupportedHash = () => new ApiError('invalid_credentials', { reason: 'unsupported_hash' })
  return buildOperation({
    ...definition,
    unsupportedHash,
    ended(deps, contents, job, refused) {
      if (refused?.code === 'invalid_credentials') definition.failed?.(deps, contents)
      const outcome = refused === undefined ? 'ok' : (refused.reason ?? refused.code)
      const whom = definition.concerns(contents, job, refused === undefined)
      deps.audit.record({ event: definition.kind, outcome, address: job.client.address, ...whom })
    },
  })
}
