/** POST /v1/login. */
import { EmailField, PasswordField } from '../credentials.js'
import { TokenBody } from '../operations.js'
import { PreferHeader } from '../prefer.js'
import { bodyProblems, limitProblem, ticketResponse, unauthorizedProblem } from '../responses.js'
import type { RoutePlugin } from './deps.js'

export const loginRoutes: RoutePlugin = async (app, { login, hold }) => {
  app.post(
    '/v1/login',
    {
      schema: {
        operationId: 'login',
        tags: ['Sessions'],
        summary: 'Log in',
        description:
          'The same 401 for a wrong password and an unknown address; after the same time too, where the hash of the account ' +
          "is of today's policy.",
        headers: PreferHeader,
        body: {
          title: 'Credentials',
          type: 'object',
          properties: { email: EmailField, password: PasswordField },
          required: ['email', 'password'],
          additionalProperties: false,
        },
        response: {
          200: TokenBody,
          202: ticketResponse,
          401: unauthorizedProblem,
          429: limitProblem,
          ...bodyProblems,
        },
      },
      onRequest: app.limitAddress,
      preHandler: app.limitAccount,
    },
    async (request, reply) => {
      const { status, body } = await hold.begin(request, reply, {
        start: (submit) => login.start(request.body, submit),
        finish: login.finish,
      })
      return reply.code(status).send(body)
    },
  )
}
