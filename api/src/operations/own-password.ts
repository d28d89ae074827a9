/** Verifies the password of a signed-in user again, before a sensitive operation. */
import type { Verdict } from '@spillway/client/queue-client'
import { ApiError } from '../problems/errors.js'
import { passwordForms } from '../schemas/credentials.js'
import type { Sessions, SessionUser } from '../sessions/sessions.js'
import type { Submit, Submitted } from '../waiting/hold.js'
import type { SignedIn } from './access.js'

/** The session, and the credential that is verified. */
export interface OwnCredential extends SignedIn {
  credentialVersion: number
}

/** Submits the job. Throws `invalid_token` when the session has ended. */
export async function submitOwnPassword(
  sessions: Sessions,
  { caller, password, submit }: { caller: SignedIn; password: string; submit: Submit },
): Promise<Submitted<OwnCredential>> {
  const user = await sessions.userOf(caller)
  const request = { ...passwordForms(password), storedHash: user.passwordHash, rehash: false }
  const pending = await submit('verify', request)
  return { contents: { ...caller, credentialVersion: user.credentialVersion }, pending }
}

/**
 * The user. Throws `invalid_token` once the session has ended, whatever the verdict: a session that has ended learns nothing about the
 * password. Throws `invalid_credentials` for a wrong password, and for one that was changed meanwhile.
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
