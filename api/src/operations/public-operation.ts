/** Operations of the public API: those on accounts. */
import type { AuditEvent, AuditEventName } from '../audit/events.js'
import { ApiError } from '../problems/errors.js'
import type { Deps } from './deps.js'
import { type AnsweredJob, buildOperation, type Operation, type OperationDefinition } from './operation.js'

type Definition<Caller, Body, Contents extends object, Answer> = Omit<
  OperationDefinition<Deps, Caller, Body, Contents, Answer>,
  'unsupportedHash' | 'ended'
> & {
  kind: AuditEventName
  /** Whom the audit names: the account, and the session that was opened or asks. */
  concerns(contents: Contents, job: AnsweredJob, succeeded: boolean): Pick<AuditEvent, 'userId' | 'sessionId'>
  /** Called after a wrong password, also where no worker verifies the stored hash. */
  failed?(deps: Deps, contents: Contents): void
}

/**
 * Defines an operation. An unsupported stored hash is answered like a wrong password, so that it does not reveal the account; metrics
 * and logs tell operators. Each end of it is recorded by the audit.
 */
export function defineOperation<Caller, Body, Contents extends object, Answer>(
  definition: Definition<Caller, Body, Contents, Answer>,
): Operation<Deps> {
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
