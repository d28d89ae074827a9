/** GET /v1/me and PUT /v1/me/password: the signed-in user. */
import { NewPasswordField, PasswordField } from '../credentials.js'
import { ApiError } from '../errors.js'
import { UserBody } from '../operations.js'
import { requireAccessToken } from '../plugins/access-token.js'
import { PreferHeader } from '../prefer.js'
import { anyProblem, bodyProblems, limitProblem, ticketResponse, unauthorizedProblem } from '../responses.js'
import type { RoutePlugin } from './deps.js'

const security = [{ accessToken: [] }]

export const meRoutes: RoutePlugin = async (app, deps) => {
  const { hold, passwordChange, sessions } = deps
  app.addHook('onRequest', requireAccessToken)

  app.get(
    '/v1/me',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'getMe',
        tags: ['Accounts'],
        summary: 'Who am I',
        security,
        response: { 200: UserBody, 401: unauthorizedProblem, ...anyProblem },
      },
    },
    async ({ user: { sub, sid } }) => {
      const user = await sessions.userOf({ sessionId: sid, userId: sub })
      if (user === undefined) throw new ApiError('invalid_token')
      return { id: user.id, email: user.email, createdAt: user.createdAt.toISOString() }
    },
  )

  app.put(
    '/v1/me/password',
    {
      schema: {
        operationId: 'changePassword',
        tags: ['Accounts'],
        summary: 'Change the password',
        description: 'Ends every other session of the user.',
        security,
        headers: PreferHeader,
        body: {
          title: 'PasswordChange',
          type: 'object',
          properties: { currentPassword: PasswordField, newPassword: NewPasswordField },
          required: ['currentPassword', 'newPassword'],
          additionalProperties: false,
        },
        response: {
          202: ticketResponse,
          204: { type: 'null' },
          401: unauthorizedProblem,
          429: limitProblem,
          ...bodyProblems,
        },
      },
      onRequest: app.limitAddress,
      preHandler: app.limitAccount,
    },
    async (request, reply) => {
      const { sub: userId, sid: sessionId } = request.user
      const { status, body } = await hold.begin(request, reply, {
        start: (submit) => passwordChange.start({ userId, sessionId, ...request.body }, submit),
        finish: passwordChange.finish,
      })
      return reply.code(status).send(body)
    },
  )
}
