/** POST /v1/login. */
import { EmailField, PasswordField } from '../credentials.js'
import { TicketBody } from '../hold.js'
import { TokenBody } from '../operations.js'
import { bodyProblems, problemResponse } from '../plugins/problem.js'
import type { RoutePlugin } from './deps.js'

export const loginRoutes: RoutePlugin = async (app, { login, hold }) => {
  app.post(
    '/v1/login',
    {
      schema: {
        summary: 'Log in',
        description: 'The same 401, after the same time, for a wrong password and an unknown address.',
        body: {
          type: 'object',
          properties: { email: EmailField, password: PasswordField },
          required: ['email', 'password'],
          additionalProperties: false,
        },
        response: {
          200: TokenBody,
          202: TicketBody,
          401: problemResponse,
          429: problemResponse,
          ...bodyProblems,
        },
      },
      preHandler: app.limitCredentials,
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
