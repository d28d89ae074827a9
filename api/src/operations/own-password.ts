/** Verifies the password of a signed-in user again, before a sensitive operation. */
import type { Verdict } from '@spillway/client/queue-client'
import { ApiError } from '../problems/errors.js'
import { passwordForms } from '../schemas/credentials.js'
import type { Sessions, SessionUser } from '../sessions/sessions.js'
import type { SignedIn } from './access.js'
import type { Started } from './operation.js'

/** The session, and the credential that is verified. */
export interface OwnCredential extends SignedIn {
  credentialVersion: number
}

/** The job that verifies it. Throws `invalid_token` when the session has ended. */
export async function verifyOwnPassword(
  sessions: Sessions,
  { caller, password }: { caller: SignedIn; password: string },
): Promise<Started<OwnCredential>> {
  const user = await sessions.userOf(caller)
  const request = { ...passwordForms(password), storedHash: user.passwordHash, rehash: false }
  const contents = { ...caller, credentialVersion: user.credentialVersion }
  return { job: { name: 'verify', request }, contents }
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
