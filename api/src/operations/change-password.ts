/** PUT /v1/me/password: one job verifies the current password and hashes the new one. */

import { ACCOUNTS } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { ApiError } from '../plugins/errors.js'
import { NewPasswordField, normalizePassword, PasswordField, passwordForms } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { SignedInContents, signedIn } from './access.js'
import { defineOperation, requireOwnPassword } from './public-operation.js'

export const changePassword = defineOperation({
  kind: 'change_password',
  method: 'PUT',
  url: '/v1/me/password',
  operationId: 'changePassword',
  tags: ['Accounts'],
  summary: 'Change the password',
  description: 'Ends every other session of the user, and makes every device unknown until its next login.',
  access: signedIn,
  body: schemaOf({
    title: 'PasswordChange',
    ...objectOf({ currentPassword: PasswordField, newPassword: NewPasswordField }),
  }),
  contents: SignedInContents,
  newPasswordField: 'newPassword',
  success: { status: 204, body: schemaOf({ type: 'null', description: 'The password was changed' }) },
  problems: { 401: unauthorizedProblem },

  concerns: ({ userId, sessionId }) => ({ userId, sessionId }),

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
