/** PUT /v1/me/email: verifies the password, then mails a link to the new address. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { newMailToken } from '../mail/tokens.js'
import { EmailField, normalizeEmail, PasswordField } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { signedInProperties, signedInWithMail } from './access.js'
import { defineOperation, requireOwnPassword, verifyOwnPassword } from './public-operation.js'

export const changeEmail = defineOperation({
  kind: 'change_email',
  method: 'PUT',
  url: '/v1/me/email',
  operationId: 'changeEmail',
  tags: ['Accounts'],
  summary: 'Change the e-mail address',
  description:
    'The address changes when the link of the mail to the new one is used; the old one then gets a notice. The answer does not tell ' +
    'whether the new address has an account already. 403 where no mail is sent.',
  access: signedInWithMail,
  body: schemaOf({ title: 'EmailChange', ...objectOf({ newEmail: EmailField, password: PasswordField }) }),
  contents: schemaOf(objectOf({ ...signedInProperties, newEmail: { type: 'string' } })),
  success: { status: 204, body: schemaOf({ type: 'null', description: 'A mail is sent to the new address' }) },
  problems: { 401: unauthorizedProblem },

  concerns: ({ userId, sessionId }) => ({ userId, sessionId }),

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
