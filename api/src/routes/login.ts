/** POST /v1/login. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import Type from 'typebox'
import { EmailField, PasswordField } from '../credentials.js'
import { TicketBody } from '../hold.js'
import { TokenBody } from '../operations.js'
import { bodyProblems, problemResponse } from '../plugins/problem.js'
import type { RouteDeps } from './deps.js'

export const loginRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { login, hold }) => {
  app.post(
    '/v1/login',
    {
      schema: {
        summary: 'Log in',
        description: 'The same 401, after the same time, for a wrong password and an unknown address.',
        body: Type.Object({ email: EmailField, password: PasswordField }, { additionalProperties: false }),
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
