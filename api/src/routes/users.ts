/** POST /v1/users: registration. */
import { EmailField, NewPasswordField } from '../credentials.js'
import { TicketBody } from '../hold.js'
import { UserBody } from '../operations.js'
import { bodyProblems, problemResponse } from '../plugins/problem.js'
import type { RoutePlugin } from './deps.js'

export const usersRoutes: RoutePlugin = async (app, { registration, hold }) => {
  app.post(
    '/v1/users',
    {
      schema: {
        summary: 'Register',
        body: {
          type: 'object',
          properties: { email: EmailField, password: NewPasswordField },
          required: ['email', 'password'],
          additionalProperties: false,
        },
        response: {
          201: UserBody,
          202: TicketBody,
          409: problemResponse,
          429: problemResponse,
          ...bodyProblems,
        },
      },
      preHandler: app.limitCredentials,
    },
    async (request, reply) => {
      const { status, body } = await hold.begin(request, reply, {
        start: (submit) => registration.start(request.body, submit),
        finish: registration.finish,
      })
      return reply.code(status).send(body)
    },
  )
}
