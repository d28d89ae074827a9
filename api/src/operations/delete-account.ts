/** POST /v1/me/delete: verifies the password once more, then deletes the account and its data. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { ApiError } from '../plugins/errors.js'
import { PasswordField } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { SignedInContents, signedIn } from './access.js'
import { defineOperation, requireOwnPassword, verifyOwnPassword } from './public-operation.js'

// POST, because proxies and clients may drop the body of a DELETE (RFC 9110, 9.3.5).
export const deleteAccount = defineOperation({
  kind: 'delete_account',
  method: 'POST',
  url: '/v1/me/delete',
  operationId: 'deleteAccount',
  tags: ['Accounts'],
  summary: 'Delete the account',
  description:
    'With its sessions, and everything else of it. Nothing brings it back. Nothing is kept but, with `LEGACY_VERIFY`, a keyed digest of its ' +
    'address, by which the old system is not asked about it again.',
  access: signedIn,
  body: schemaOf({ title: 'AccountDeletion', ...objectOf({ password: PasswordField }) }),
  contents: SignedInContents,
  success: { status: 204, body: schemaOf({ type: 'null', description: 'The account was deleted' }) },
  problems: { 401: unauthorizedProblem },

  concerns: ({ userId, sessionId }) => ({ userId, sessionId }),

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
