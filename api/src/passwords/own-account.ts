/** Endpoints of signed-in users, each of which verifies their password once more. */
import { ACCOUNTS } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { eraseAccount } from '../accounts/deletion.js'
import type { AuditEventName } from '../audit/store.js'
import { ApiError } from '../http/problems.js'
import { requireMail } from '../mail/post.js'
import { issueToken, newMailToken } from '../mail/tokens.js'
import {
  EmailField,
  NewPasswordField,
  normalizeEmail,
  normalizePassword,
  PasswordField,
  passwordForms,
} from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import type { Deps } from '../servers.js'
import { requireAccessToken } from '../sessions/access-tokens.js'
import type { SessionOfUser, SessionUser } from '../sessions/sessions.js'
import {
  defineEndpoint,
  type Ending,
  type FinishedJob,
  recordEnding,
  type StartInput,
  schemaOf,
  type WantedJob,
} from './endpoint.js'

/** The session, and the credential that is verified. */
const ownCredential = {
  userId: { type: 'string' },
  sessionId: { type: 'string' },
  credentialVersion: { type: 'integer' },
} as const
interface OwnCredential extends SessionOfUser {
  credentialVersion: number
}
const remembered = schemaOf(objectOf(ownCredential))

const common = {
  onRequest: () => [requireAccessToken],
  security: [{ accessToken: [] }],
  tags: ['Accounts'],
  problems: { 401: unauthorizedProblem },
} as const

/**
 * The user of a first request, which is counted, or of a request that is started again. Throws
 * `invalid_token` if the session has ended.
 */
async function userOf(
  deps: Deps,
  { request, reply, earlier }: StartInput<unknown, OwnCredential>,
): Promise<{ user: SessionUser; credential: OwnCredential }> {
  if (earlier === undefined) {
    await deps.limits.network(request, reply)
    await deps.limits.account(request, reply)
  }
  const { userId, sessionId } = earlier ?? { userId: request.user.sub, sessionId: request.user.sid }
  const user = await deps.sessions.userOf({ userId, sessionId })
  return { user, credential: { userId, sessionId, credentialVersion: user.credentialVersion } }
}

function verifying(user: SessionUser, password: string): WantedJob {
  const request = { ...passwordForms(password), owner: ACCOUNTS, storedHash: user.passwordHash, rehash: false }
  return { name: 'verify', request }
}

/**
 * The user whose password matched.
 *
 * @throws `invalid_token` when the session has ended; `invalid_credentials` for a wrong password,
 *   or one that was changed meanwhile
 */
async function requireOwnPassword(
  { sessions }: Deps,
  { userId, sessionId, credentialVersion }: OwnCredential,
  result: FinishedJob['result'],
): Promise<SessionUser> {
  const user = await sessions.userOf({ userId, sessionId })
  if (result.kind !== 'match') throw new ApiError('invalid_credentials', { reason: 'wrong_password' })
  // The hash of this job is stored if the answer to its change was lost.
  if (user.credentialVersion !== credentialVersion && user.passwordHash !== result.hash)
    throw new ApiError('invalid_credentials', { reason: 'password_changed' })
  return user
}

function record(event: AuditEventName) {
  return (deps: Deps, { userId, sessionId }: OwnCredential, ending: Ending) =>
    recordEnding(deps, event, ending, { userId, sessionId })
}

/** POST /v1/me/password/verify: verifies the password of a signed-in user once more. */
export const verifyPassword = defineEndpoint({
  route: {
    ...common,
    kind: 'verify_password',
    method: 'POST',
    url: '/v1/me/password/verify',
    operationId: 'verifyPassword',
    summary: 'Verify the password again',
    description:
      'Use this before a sensitive action: an open session does not prove who is using it. It changes nothing.',
    body: schemaOf({ title: 'PasswordToVerify', ...objectOf({ password: PasswordField }) }),
    success: { status: 204, body: schemaOf({ type: 'null', description: 'The password is correct' }) },
  },
  remembered,

  async start(deps: Deps, input) {
    const { user, credential } = await userOf(deps, input)
    return { remembered: credential, job: verifying(user, input.body.password) }
  },

  async finish(deps, credential, { result }) {
    await requireOwnPassword(deps, credential, result)
    return { body: null }
  },

  ended: record('verify_password'),
})

/** PUT /v1/me/password: one job verifies the current password and hashes the new one. */
export const changePassword = defineEndpoint({
  route: {
    ...common,
    kind: 'change_password',
    method: 'PUT',
    url: '/v1/me/password',
    operationId: 'changePassword',
    summary: 'Change the password',
    description: 'Ends every other session of the user, and makes every device unknown until its next login.',
    body: schemaOf({
      title: 'PasswordChange',
      ...objectOf({ currentPassword: PasswordField, newPassword: NewPasswordField }),
    }),
    newPasswordField: 'newPassword',
    success: { status: 204, body: schemaOf({ type: 'null', description: 'The password was changed' }) },
  },
  remembered,

  async start(deps: Deps, input) {
    const { user, credential } = await userOf(deps, input)
    const { currentPassword, newPassword } = input.body
    deps.newPasswords.check({ field: 'newPassword', password: newPassword, email: user.email })
    const request = {
      ...passwordForms(currentPassword),
      owner: ACCOUNTS,
      storedHash: user.passwordHash,
      nextPassword: normalizePassword(newPassword),
    }
    return { remembered: credential, job: { name: 'verify', request } }
  },

  async finish(deps, credential, { result }) {
    const { database, sessions, post } = deps
    const user = await requireOwnPassword(deps, credential, result)
    if (result.kind !== 'match' || result.hash === undefined) throw new ApiError('internal_error')
    const { userId, sessionId, credentialVersion } = credential
    const { hash } = result
    // One transaction: users expect a new password to end the sessions of a thief.
    const count = await database.$transaction(async (transaction) => {
      const changed = await transaction.$executeRaw`
        UPDATE users SET password_hash = ${hash}, credential_version = credential_version + 1, password_changed_at = now(),
          updated_at = now()
        WHERE id = ${userId}::uuid AND credential_version = ${credentialVersion} AND disabled_at IS NULL`
      if (changed > 0) await sessions.endOthers({ userId, keptSessionId: sessionId }, transaction)
      return changed
    })
    if (count === 0) await requireOwnPassword(deps, credential, result)
    await post?.notify(user, 'password-changed')
    return { body: null }
  },

  ended: record('change_password'),
})

/** PUT /v1/me/email: verifies the password, then mails a link to the new address. */
export const changeEmail = defineEndpoint({
  route: {
    ...common,
    kind: 'change_email',
    method: 'PUT',
    url: '/v1/me/email',
    operationId: 'changeEmail',
    summary: 'Change the e-mail address',
    description:
      'A mail with a link goes to the new address. The address changes when the link is used; the old address then gets a notice, and a keyed digest ' +
      'of it remains, so that an import does not bring it back. The answer does not tell whether the new address has an account. The answer is 403 if the service sends no mail.',
    onRequest: (deps: Deps) => [requireMail(deps), requireAccessToken],
    body: schemaOf({ title: 'EmailChange', ...objectOf({ newEmail: EmailField, password: PasswordField }) }),
    success: { status: 204, body: schemaOf({ type: 'null', description: 'A mail was queued for the new address' }) },
  },
  remembered: schemaOf(objectOf({ ...ownCredential, newEmail: { type: 'string' } })),

  async start(deps: Deps, input) {
    const { body, request, reply, earlier } = input
    if (earlier === undefined) await deps.limits.mailNetwork(request, reply)
    const { user, credential } = await userOf(deps, input)
    return {
      remembered: { ...credential, newEmail: normalizeEmail(body.newEmail) },
      job: verifying(user, body.password),
    }
  },

  async finish(deps, { newEmail, ...credential }, { result, client, requestId }) {
    const { database, post } = deps
    const { id: userId, credentialVersion } = await requireOwnPassword(deps, credential, result)
    if (post === undefined) throw new ApiError('mail_off')
    const token = newMailToken()
    // The token is stored now: a mail may wait for an hour, and a change of the password voids it meanwhile.
    const link = { token, purpose: 'change', account: { id: userId, credentialVersion }, newEmail } as const
    const stored = await issueToken(database, { ...link, lifeMs: post.lifeMsOf('change') })
    if (stored === undefined) throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    const outcome = await post.send({ kind: 'change', userId, newEmail, token }, newEmail)
    // In addition to `ok`, like the outcome of a registration's mail.
    if (outcome !== 'ok') deps.audit.record({ event: 'change_email', outcome, userId, ip: client.ip, requestId })
    return { body: null }
  },

  ended: record('change_email'),
})

/** POST /v1/me/delete: verifies the password once more, then deletes the account and its data. */
// POST, because proxies and clients may drop the body of a DELETE (RFC 9110, 9.3.5).
export const deleteAccount = defineEndpoint({
  route: {
    ...common,
    kind: 'delete_account',
    method: 'POST',
    url: '/v1/me/delete',
    operationId: 'deleteAccount',
    summary: 'Delete the account',
    description:
      'Deletes the account, its sessions, and everything else that belongs to it. This cannot be undone. A mail tells the owner. A log of ' +
      'what was done, without the address, remains for a time; keyed digests of address and id remain, so that an import does not bring the ' +
      'account back. While a mail to the account is being sent, the answer may be 503, and the account remains.',
    body: schemaOf({ title: 'AccountDeletion', ...objectOf({ password: PasswordField }) }),
    success: { status: 204, body: schemaOf({ type: 'null', description: 'The account was deleted' }) },
  },
  /** The address and whether it is confirmed, for the notice. */
  remembered: schemaOf(objectOf({ ...ownCredential, email: { type: 'string' }, isConfirmed: { type: 'boolean' } })),

  async start(deps: Deps, input) {
    const { user, credential } = await userOf(deps, input)
    const { email, isConfirmed } = user
    return { remembered: { ...credential, email, isConfirmed }, job: verifying(user, input.body.password) }
  },

  async finish(deps, { email, isConfirmed, ...credential }, { result, mayBeDone, client, requestId }) {
    const { userId: id } = credential
    // The account is gone, and its session too, if the answer to its deletion was lost.
    const isGone = result.kind === 'match' && (await deps.database.user.count({ where: { id } })) === 0
    // A session that was ended meanwhile deletes nothing.
    const user = isGone ? { id, email } : await requireOwnPassword(deps, credential, result)
    const erased = await eraseAccount(deps, user)
    // The password may change at this moment.
    if (erased === 'not_erased') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    // Another deletion at the same time may have been first.
    const outcome = erased === 'erased' || mayBeDone ? 'ok' : 'unchanged'
    const { userId, sessionId } = credential
    deps.audit.record({ event: 'delete_account', outcome, userId, sessionId, ip: client.ip, requestId })
    await deps.post?.notify({ email, isConfirmed }, 'deleted')
    return { body: null }
  },

  ended(deps, credential, ending) {
    if (ending.kind !== 'succeeded') record('delete_account')(deps, credential, ending)
  },
})
