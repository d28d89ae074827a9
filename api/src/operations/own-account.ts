/** Operations of signed-in users, each of which verifies their password once more. */
import type { Verdict } from '@spillway/queue/queue-client'
import { ACCOUNTS } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { newMailToken } from '../mail/tokens.js'
import { ApiError } from '../plugins/errors.js'
import {
  EmailField,
  NewPasswordField,
  normalizeEmail,
  normalizePassword,
  PasswordField,
  passwordForms,
} from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import type { Sessions, SessionUser } from '../sessions/sessions.js'
import { type SignedIn, signedIn, signedInWithMail } from './access.js'
import type { Started } from './operation.js'
import { defineOperation } from './public-operation.js'

/** Ticket contents: the session, and the credential that is verified. */
const ownCredential = {
  userId: { type: 'string' },
  sessionId: { type: 'string' },
  credentialVersion: { type: 'integer' },
} as const
interface OwnCredential extends SignedIn {
  credentialVersion: number
}

const common = {
  tags: ['Accounts'],
  access: signedIn,
  contents: schemaOf(objectOf(ownCredential)),
  problems: { 401: unauthorizedProblem },
  concerns: ({ userId, sessionId }: SignedIn) => ({ userId, sessionId }),
}

/** The job that verifies it. Throws `invalid_token` when the session has ended. */
async function verifyOwnPassword(
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
async function requireOwnPassword(
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

/** POST /v1/me/password/verify: verifies the password of a signed-in user once more. */
export const verifyPassword = defineOperation({
  ...common,
  kind: 'verify_password',
  method: 'POST',
  url: '/v1/me/password/verify',
  operationId: 'verifyPassword',
  summary: 'Verify the password once more',
  description: 'For use before a sensitive action: an open session does not prove who is using it. Changes nothing.',
  body: schemaOf({ title: 'PasswordToVerify', ...objectOf({ password: PasswordField }) }),
  success: { status: 204, body: schemaOf({ type: 'null', description: 'The password is right' }) },

  start: ({ sessions }, { body: { password }, caller }) => verifyOwnPassword(sessions, { caller, password }),

  async finish({ sessions }, credential, { verdict }) {
    await requireOwnPassword(sessions, credential, verdict)
    return null
  },
})

/** PUT /v1/me/password: one job verifies the current password and hashes the new one. */
export const changePassword = defineOperation({
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

  async start({ sessions, newPasswords }, { body: { currentPassword, newPassword }, caller }) {
    const user = await sessions.userOf(caller)
    newPasswords.check({ field: 'newPassword', password: newPassword, email: user.email })
    const request = {
      ...passwordForms(currentPassword),
      owner: ACCOUNTS,
      storedHash: user.passwordHash,
      nextPassword: normalizePassword(newPassword),
    }
    const contents = { ...caller, credentialVersion: user.credentialVersion }
    return { job: { name: 'verify', request }, contents }
  },

  async finish({ database, sessions, post }, credential, { verdict }) {
    const user = await requireOwnPassword(sessions, credential, verdict)
    if (verdict.kind !== 'match' || verdict.hash === undefined) throw new ApiError('internal_error')
    const { userId, sessionId, credentialVersion } = credential
    const data = { passwordHash: verdict.hash, credentialVersion: { increment: 1 } }
    // One transaction: users expect a new password to end the sessions of a thief.
    await database.$transaction(async (transaction) => {
      const { count } = await transaction.user.updateMany({ where: { id: userId, credentialVersion }, data })
      if (count === 0) throw new ApiError('invalid_credentials', { reason: 'password_changed' })
      await sessions.endOthers({ userId, keptSessionId: sessionId }, transaction)
    })
    await post?.notify(user, 'password-changed')
    return null
  },
})

/** PUT /v1/me/email: verifies the password, then mails a link to the new address. */
export const changeEmail = defineOperation({
  ...common,
  kind: 'change_email',
  method: 'PUT',
  url: '/v1/me/email',
  operationId: 'changeEmail',
  summary: 'Change the e-mail address',
  description:
    'The address changes when the link of the mail to the new one is used; the old one then gets a notice. The answer does not tell ' +
    'whether the new address has an account already. 403 where no mail is sent.',
  access: signedInWithMail,
  body: schemaOf({ title: 'EmailChange', ...objectOf({ newEmail: EmailField, password: PasswordField }) }),
  contents: schemaOf(objectOf({ ...ownCredential, newEmail: { type: 'string' } })),
  success: { status: 204, body: schemaOf({ type: 'null', description: 'A mail is sent to the new address' }) },

  async start({ sessions }, { body: { newEmail, password }, caller }) {
    const { job, contents } = await verifyOwnPassword(sessions, { caller, password })
    return { job, contents: { ...contents, newEmail: normalizeEmail(newEmail) } }
  },

  async finish({ sessions, post }, { newEmail, ...credential }, { verdict }) {
    const { id: userId } = await requireOwnPassword(sessions, credential, verdict)
    await post?.send({ kind: 'change', userId, newEmail, token: newMailToken() }, newEmail)
    return null
  },
})

/** POST /v1/me/delete: verifies the password once more, then deletes the account and its data. */
// POST, because proxies and clients may drop the body of a DELETE (RFC 9110, 9.3.5).
export const deleteAccount = defineOperation({
  ...common,
  kind: 'delete_account',
  method: 'POST',
  url: '/v1/me/delete',
  operationId: 'deleteAccount',
  summary: 'Delete the account',
  description:
    'With its sessions, and everything else of it. Nothing brings it back. Nothing is kept but, with `LEGACY_VERIFY`, a keyed digest of its ' +
    'address, by which the old system is not asked about it again.',
  body: schemaOf({ title: 'AccountDeletion', ...objectOf({ password: PasswordField }) }),
  success: { status: 204, body: schemaOf({ type: 'null', description: 'The account was deleted' }) },

  start: ({ sessions }, { body: { password }, caller }) => verifyOwnPassword(sessions, { caller, password }),

  async finish({ database, sessions, post }, credential, { verdict }) {
    // A session that was ended meanwhile deletes nothing.
    const user = await requireOwnPassword(sessions, credential, verdict)
    const { id, credentialVersion } = user
    // Foreign keys delete the sessions and their tokens. The password may be changed at this
    // moment.
    const { count } = await database.user.deleteMany({ where: { id, credentialVersion } })
    if (count === 0) throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    await post?.notify(user, 'deleted')
    return null
  },
})
