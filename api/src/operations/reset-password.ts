/** POST /v1/password/reset: the token of a mail in place of the password; the new one is hashed as any other. */
import { mailTokenDigest, resetPassword as reset, resettable } from '../mail/tokens.js'
import { ApiError } from '../plugins/errors.js'
import { MailTokenField, NewPasswordField, normalizePassword } from '../schemas/credentials.js'
import { problemResponse, schemaOf } from '../schemas/responses.js'
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
  body: schemaOf({
    title: 'PasswordReset',
    type: 'object',
    properties: { token: MailTokenField, newPassword: NewPasswordField },
    required: ['token', 'newPassword'],
    additionalProperties: false,
  }),
  contents: schemaOf({
    type: 'object',
    properties: { userId: { type: 'string' }, tokenHash: { type: 'string' } },
    required: ['userId', 'tokenHash'],
    additionalProperties: false,
  }),
  newPasswordField: 'newPassword',
  answer: { status: 204, body: schemaOf({ type: 'null', description: 'The password was changed' }) },
  problems: { 403: problemResponse },

  concerns: ({ userId }) => ({ userId }),

  async start({ database, checkPassword }, { body: { token, newPassword } }) {
    // Before the hash, which would be work for anyone; the token is used in `finish`, where it counts once.
    const owner = await resettable(database, token)
    if (owner === undefined) throw new ApiError('invalid_mail_token')
    checkPassword({ field: 'newPassword', password: newPassword, email: owner.email })
    const tokenHash = Buffer.from(mailTokenDigest(token)).toString('base64')
    const request = { password: normalizePassword(newPassword) }
    return { job: { name: 'hash', request }, contents: { userId: owner.id, tokenHash } }
  },

  async finish({ database, sessions, post }, { tokenHash }, { verdict }) {
    if (verdict.kind !== 'hashed') throw new ApiError('internal_error')
    const passwordHash = verdict.hash
    // Sessions in a statement of their own: one that is being opened is seen only after the lock on its account.
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
