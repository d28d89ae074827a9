/** POST /v1/me/password/verify: verifies the password of a signed-in user once more. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { PasswordField } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { SignedInContents, signedIn } from './access.js'
import { defineOperation, requireOwnPassword, verifyOwnPassword } from './public-operation.js'

export const verifyPassword = defineOperation({
  kind: 'verify_password',
  method: 'POST',
  url: '/v1/me/password/verify',
  operationId: 'verifyPassword',
  tags: ['Accounts'],
  summary: 'Verify the password once more',
  description: 'For use before a sensitive action: an open session does not prove who is using it. Changes nothing.',
  access: signedIn,
  body: schemaOf({ title: 'PasswordToVerify', ...objectOf({ password: PasswordField }) }),
  contents: SignedInContents,
  success: { status: 204, body: schemaOf({ type: 'null', description: 'The password is right' }) },
  problems: { 401: unauthorizedProblem },

  concerns: ({ userId, sessionId }) => ({ userId, sessionId }),

  start: ({ sessions }, { body: { password }, caller }) => verifyOwnPassword(sessions, { caller, password }),

  async finish({ sessions }, credential, { verdict }) {
    await requireOwnPassword(sessions, credential, verdict)
    return null
  },
})
