/** What is done by mail and needs no hash. Tokens are in bodies: proxies log URLs. */

import { isTaken } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { confirmAddress, newMailToken } from '../mail/tokens.js'
import { requireMail } from '../operations/access.js'
import type { RoutePlugin } from '../operations/public-operation.js'
import { ApiError } from '../plugins/errors.js'
import { EmailField, MailTokenField, normalizeEmail } from '../schemas/credentials.js'
import { anyProblem, bodyProblems, limitProblem, unauthorizedProblem } from '../schemas/responses.js'
import { requireAccessToken } from '../sessions/access-token.js'

const nothing = { type: 'null' } as const
const problems = { 429: limitProblem }

export const mailRoutes: RoutePlugin = async (app, { database, sessions, post, audit }) => {
  app.post(
    '/v1/password/forgotten',
    {
      schema: {
        operationId: 'requestPasswordReset',
        tags: ['Accounts'],
        summary: 'Ask for a new password by mail',
        description: 'Always 204: a mail is sent if the address has an account. 403 where no mail is sent.',
        body: { title: 'ForgottenPassword', ...objectOf({ email: EmailField }) },
        response: { 204: nothing, ...problems, ...bodyProblems },
      },
      onRequest: [requireMail(app), app.limitNetwork, app.limitMailNetwork],
      preHandler: app.limitAccount,
    },
    async (request, reply) => {
      const email = normalizeEmail(request.body.email)
      audit.record({ event: 'request_password_reset', outcome: 'ok', ip: request.ip, requestId: request.id })
      await post?.send({ kind: 'reset', email, token: newMailToken() }, email)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/v1/email/confirm',
    {
      schema: {
        operationId: 'confirmEmail',
        tags: ['Accounts'],
        summary: 'Confirm an e-mail address',
        description: 'Uses the token of a mail that confirms an address, or changes it. 403 where no mail is sent.',
        body: { title: 'EmailConfirmation', ...objectOf({ token: MailTokenField }) },
        response: { 204: nothing, ...problems, ...bodyProblems },
      },
      onRequest: [requireMail(app), app.limitNetwork],
    },
    async (request, reply) => {
      const confirmed = await confirmAddress(database, request.body.token).catch((error: unknown) => {
        // Two accounts are changed to one address at once.
        if (isTaken(error)) return undefined
        throw error
      })
      const outcome = confirmed === undefined ? 'invalid_mail_token' : 'ok'
      const { ip, id: requestId } = request
      audit.record({ event: 'confirm_email', outcome, userId: confirmed?.userId ?? null, ip, requestId })
      if (confirmed === undefined) throw new ApiError('invalid_mail_token')
      if (confirmed.changedFrom !== undefined) await post?.notify(confirmed.changedFrom, 'changed')
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/v1/me/email/confirmation',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'requestEmailConfirmation',
        tags: ['Accounts'],
        summary: 'Resend the confirmation mail',
        security: [{ accessToken: [] }],
        response: { 204: nothing, 401: unauthorizedProblem, ...problems, ...bodyProblems, ...anyProblem },
      },
      onRequest: [requireMail(app), requireAccessToken, app.limitRefreshNetwork, app.limitMailNetwork],
      preHandler: app.limitAccount,
    },
    async ({ user, ip, id: requestId }, reply) => {
      const { id, email } = await sessions.userOf({ sessionId: user.sid, userId: user.sub })
      const event = { event: 'request_email_confirmation', outcome: 'ok', userId: id, sessionId: user.sid } as const
      audit.record({ ...event, ip, requestId })
      await post?.send({ kind: 'confirm', userId: id, token: newMailToken() }, email)
      return reply.code(204).send(null)
    },
  )
}
