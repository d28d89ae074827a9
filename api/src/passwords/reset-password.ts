/** POST /v1/password/reset: sets a new password with the token of a mail. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { ApiError } from '../http/problems.js'
import { accountOfEmail } from '../limits/limits.js'
import { requireMail } from '../mail/post.js'
import { mailTokenDigest, resetPassword as reset, resettable } from '../mail/tokens.js'
import { MailTokenField, NewPasswordField, normalizePassword } from '../schemas/credentials.js'
import { DeviceBody } from '../schemas/responses.js'
import type { Deps } from '../servers.js'
import { defineEndpoint, recordEnding, schemaOf } from './endpoint.js'

export const resetPassword = defineEndpoint({
  route: {
    kind: 'reset_password',
    method: 'POST',
    url: '/v1/password/reset',
    operationId: 'resetPassword',
    tags: ['Accounts'],
    summary: 'Set a new password with the link of a mail',
    description:
      'Ends every session of the account, and confirms its address. After this the device is known, as after a login. ' +
      'The answer is 403 if the service sends no mail.',
    onRequest: (deps: Deps) => [requireMail(deps)],
    body: schemaOf({ title: 'PasswordReset', ...objectOf({ token: MailTokenField, newPassword: NewPasswordField }) }),
    newPasswordField: 'newPassword',
    success: { status: 200, body: schemaOf(DeviceBody) },
    problems: {},
  },
  remembered: schemaOf(objectOf({ userId: { type: 'string' }, tokenHash: { type: 'string' } })),

  async start(deps: Deps, { body: { token, newPassword }, request, reply, earlier }) {
    const { database, newPasswords, limits } = deps
    if (earlier === undefined) await limits.network(request, reply)
    // Checked before the hash: otherwise anyone could cause hashes. `finish` uses the token, once.
    const owner = await resettable(database, token)
    if (owner === undefined) throw new ApiError('invalid_mail_token')
    newPasswords.check({ field: 'newPassword', password: newPassword, email: owner.email })
    return {
      remembered: { userId: owner.id, tokenHash: Buffer.from(mailTokenDigest(token)).toString('base64') },
      job: { name: 'hash', request: { password: normalizePassword(newPassword) } },
    }
  },

  async finish({ database, sessions, post, guessing, tokenCarrier }, { userId, tokenHash }, { result }) {
    if (result.kind !== 'hashed') throw new ApiError('internal_error')
    const passwordHash = result.hash
    // A separate statement ends the sessions: it sees new ones only after the lock on the account.
    const changed = await database.$transaction(async (transaction) => {
      const owner = await reset(transaction, { tokenHash, passwordHash })
      if (owner !== undefined) await sessions.endAll(owner.id, transaction)
      return owner
    })
    // The hash of this job is stored if the answer to its reset was lost.
    const user = changed ?? (await database.user.findFirst({ where: { id: userId, passwordHash } }))
    if (user === null) throw new ApiError('invalid_mail_token')
    // The link has confirmed the address.
    await post?.notify({ email: user.email, isConfirmed: true }, 'was-reset')
    const { credentialVersion } = user
    const account = accountOfEmail(user.email)
    return tokenCarrier.device({ deviceToken: guessing.issueDeviceToken(account, { userId, credentialVersion }) })
  },

  ended: (deps, { userId }, ending) => recordEnding(deps, 'reset_password', ending, { userId }),
})
