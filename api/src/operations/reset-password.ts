/** POST /v1/password/reset: sets a new password by the token of a mail. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { mailTokenDigest, resetPassword as reset, resettable } from '../mail/tokens.js'
import { ApiError } from '../plugins/errors.js'
import { MailTokenField, NewPasswordField, normalizePassword } from '../schemas/credentials.js'
import { schemaOf } from '../schemas/schema.js'
import { mailed } from './access.js'
import { defineOperation } from './public-operation.js'

export const resetPassword = defineOperation({
  kind: 'reset_password',
  method: 'POST',
  url: '/v1/password/reset',
  operationId: 'resetPassword',
  tags: ['Accounts'],
  summary: 'Choose a new password by a mail',
  description: 'Ends every session of the account, and confirms its address. 403 where no mail is sent.',
  access: mailed,
  body: schemaOf({ title: 'PasswordReset', ...objectOf({ token: MailTokenField, newPassword: NewPasswordField }) }),
  contents: schemaOf(objectOf({ userId: { type: 'string' }, tokenHash: { type: 'string' } })),
  newPasswordField: 'newPassword',
  success: { status: 204, body: schemaOf({ type: 'null', description: 'The password was changed' }) },
  problems: {},

  concerns: ({ userId }) => ({ userId }),

  async start({ database, newPasswords }, { body: { token, newPassword } }) {
    // Before the hash, which would be work for anyone. `finish` uses the token, once.
    const owner = await resettable(database, token)
    if (owner === undefined) throw new ApiError('invalid_mail_token')
    newPasswords.check({ field: 'newPassword', password: newPassword, email: owner.email })
    const tokenHash = Buffer.from(mailTokenDigest(token)).toString('base64')
    const request = { password: normalizePassword(newPassword) }
    return { job: { name: 'hash', request }, contents: { userId: owner.id, tokenHash } }
  },

  async finish({ database, sessions, post }, { tokenHash }, { verdict }) {
    if (verdict.kind !== 'hashed') throw new ApiError('internal_error')
    const passwordHash = verdict.hash
    // Sessions by a statement of their own: it sees new ones only after the lock on the account.
    const user = await database.$transaction(async (transaction) => {
      const changed = await reset(transaction, { tokenHash, passwordHash })
      if (changed !== undefined) await sessions.endAll(changed.id, transaction)
      return changed
    })
    if (user === undefined) throw new ApiError('invalid_mail_token')
    // The link has confirmed the address.
    await post?.notify({ email: user.email, isConfirmed: true }, 'was-reset')
    return null
  },
})
