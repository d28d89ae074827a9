/** Operations of the public API: those on accounts. */

import type { Verdict } from '@spillway/queue/queue-client'
import { ACCOUNTS } from '@spillway/queue/wire/job'
import type { AuditEvent, AuditEventName } from '../audit/store.js'
import { ApiError } from '../plugins/errors.js'
import { passwordForms } from '../schemas/credentials.js'
import type { Sessions, SessionUser } from '../sessions/sessions.js'
import type { SignedIn } from './access.js'
import type { Deps } from './deps.js'
import { type ClientJob, isTicketEnd, Operation, type OperationDefinition, type Started } from './operation.js'

type Definition<Caller, Body, Contents extends object, Answer> = Omit<
  OperationDefinition<Deps, Caller, Body, Contents, Answer>,
  'unsupportedHash' | 'ended'
> & {
  kind: AuditEventName
  /** Whom the audit names, the account and session, and the standing of a login. */
  concerns(
    contents: Contents,
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

/** The session, and the credential that is verified. */
interface OwnCredential extends SignedIn {
  credentialVersion: number
}

/** The job that verifies it. Throws `invalid_token` when the session has ended. */
export async function verifyOwnPassword(
  sessions: Sessions,
  { caller, password }: { caller: SignedIn; password: string },
): Promise<Started<OwnCredential>> {
  const user = await sessions.userOf(caller)
  const request = { ...passwordForms(password), owner: ACCOUNTS, storedHash: user.passwordHash, rehash: false }
  const contents = { ...caller, credentialVersion: user.credentialVersion }
  return { job: { name: 'verify', request }, contents }
}

/**
 * The user whose password matched.
 *
 * @throws `invalid_token` when the session has ended; `invalid_credentials` for a wrong password,
 *   or one that was changed meanwhile
 */
export async function requireOwnPassword(
  sessions: Sessions,
  { userId, sessionId, credentialVersion }: OwnCredential,
  verdict: Pick<Verdict, 'kind'>,
): Promise<SessionUser> {
  const user = await sessions.userOf({ userId, sessionId })
  if (verdict.kind !== 'match') throw new ApiError('invalid_credentials', { reason: 'wrong_password' })
  if (user.credentialVersion !== credentialVersion)
    throw new ApiError('invalid_credentials', { reason: 'password_changed' })
  return user
}
