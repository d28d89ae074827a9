/** POST /v1/users: registration. */
import { EmailField, NewPasswordField } from '../credentials.js'
import { UserBody } from '../operations.js'
import { PreferHeader } from '../prefer.js'
import { bodyProblems, limitProblem, problemResponse, ticketResponse } from '../responses.js'
import type { RoutePlugin } from './deps.js'

export const usersRoutes: RoutePlugin = async (app, { registration, hold }) => {
  app.post(
    '/v1/users',
    {
      schema: {
        operationId: 'register',
        tags: ['Accounts'],
        summary: 'Register',
        headers: PreferHeader,
        body: {
          title: 'NewAccount',
          type: 'object',
          properties: { email: EmailField, password: NewPasswordField },
          required: ['email', 'password'],
          additionalProperties: false,
        },
        response: {
          201: UserBody,
          202: ticketResponse,
          409: problemResponse,
          429: limitProblem,
          ...bodyProblems,
        },
      },
      onRequest: app.limitAddress,
      preHandler: app.limitAccount,
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
