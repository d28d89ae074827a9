/** Routes that use mail and need no hash. Tokens are in bodies, because proxies log URLs. */

import { isTaken } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { ApiError, orUnknown } from '../http/problems.js'
import { EmailField, MailTokenField, normalizeEmail } from '../schemas/credentials.js'
import { anyProblem, bodyProblems, limitProblem, unauthorizedProblem } from '../schemas/responses.js'
import type { RoutePlugin } from '../servers.js'
import { requireAccessToken } from '../sessions/access-tokens.js'
import { requireMail } from './post.js'
import { confirmAddress, newMailToken, ownerOf } from './tokens.js'

const nothing = { type: 'null' } as const
const problems = { 429: limitProblem }

export const mailRoutes: RoutePlugin = async (app, { database, keyring, sessions, post, audit, limits }) => {
  app.addHook('onRequest', requireMail({ post }))

  app.post(
    '/v1/password/forgotten',
    {
      schema: {
        operationId: 'requestPasswordReset',
        tags: ['Accounts'],
        summary: 'Request a link that sets a new password',
        description: 'Returns 204, and sends a mail if the address has an account. 403 if the service sends no mail.',
        body: { title: 'ForgottenPassword', ...objectOf({ email: EmailField }) },
        response: { 204: nothing, ...problems, ...bodyProblems },
      },
      onRequest: [limits.network, limits.mailNetwork],
      preHandler: limits.account,
    },
    async (request, reply) => {
      const email = normalizeEmail(request.body.email)
      const outcome = (await post?.send({ kind: 'reset', email, token: newMailToken() }, email)) ?? 'mail_off'
      audit.record({ event: 'request_password_reset', outcome, email, ip: request.ip, requestId: request.id })
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/v1/email/confirm',
    {
      config: { event: 'confirm_email' },
      schema: {
        operationId: 'confirmEmail',
        tags: ['Accounts'],
        summary: 'Confirm an e-mail address',
        description: 'Confirms or changes an address with the token of a mail. 403 if the service sends no mail.',
        body: { title: 'EmailConfirmation', ...objectOf({ token: MailTokenField }) },
        response: { 204: nothing, ...problems, ...bodyProblems },
      },
      onRequest: limits.network,
    },
    async (request, reply) => {
      const { token } = request.body
      const owner = await ownerOf(database, token)
      if (owner !== undefined) request.changes = { userId: owner.id }
      const confirming = owner && orUnknown(confirmAddress({ database, keyring }, token, owner))
      const confirmed = await confirming?.catch((error: unknown) => {
        // Two accounts are changed to the same address at the same time.
        if (isTaken(error)) return undefined
        throw error
      })
      const outcome = confirmed === undefined ? 'invalid_mail_token' : 'ok'
      const userId = owner?.id ?? null
      audit.record({ event: 'confirm_email', outcome, userId, ip: request.ip, requestId: request.id })
      if (confirmed === undefined) throw new ApiError('invalid_mail_token')
      if (confirmed.changedFrom !== undefined) await post?.notify(confirmed.changedFrom, 'changed')
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/v1/me/email/confirmation',
    {
      config: { priority: 'continued' },
      schema: {
        operationId: 'requestEmailConfirmation',
        tags: ['Accounts'],
        summary: 'Resend the confirmation mail',
        security: [{ accessToken: [] }],
        response: { 204: nothing, 401: unauthorizedProblem, ...problems, ...bodyProblems, ...anyProblem },
      },
      onRequest: [requireAccessToken, limits.refreshNetwork, limits.mailNetwork],
      preHandler: limits.account,
    },
    async ({ user, ip, id: requestId }, reply) => {
      const { id, email } = await sessions.userOf({ sessionId: user.sid, userId: user.sub })
      const outcome = (await post?.send({ kind: 'confirm', userId: id, token: newMailToken() }, email)) ?? 'mail_off'
      const event = { event: 'request_email_confirmation', outcome, userId: id, sessionId: user.sid } as const
      audit.record({ ...event, ip, requestId })
      return reply.code(204).send(null)
    },
  )
}
