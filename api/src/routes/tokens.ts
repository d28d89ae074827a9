/** POST /v1/token/refresh and POST /v1/logout. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import Type from 'typebox'
import { TokenBody } from '../operations.js'
import { bodyProblems, problemResponse } from '../plugins/problem.js'
import type { RouteDeps } from './deps.js'

const RefreshTokenBody = Type.Object(
  { refreshToken: Type.String({ minLength: 1, maxLength: 256 }) },
  { additionalProperties: false },
)

export const tokenRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { sessions, issueTokens }) => {
  app.post(
    '/v1/token/refresh',
    {
      schema: {
        summary: 'Trade a refresh token for a new pair',
        description: 'The old token dies. Showing a dead one ends the session for everyone who holds a part of it.',
        body: RefreshTokenBody,
        response: { 200: TokenBody, 401: problemResponse, ...bodyProblems },
      },
    },
    async (request) => issueTokens(await sessions.refresh(request.body.refreshToken)),
  )

  app.post(
    '/v1/logout',
    {
      schema: {
        summary: 'End the session of a refresh token',
        description: 'Says 204 also for a token that is unknown or dead.',
        body: RefreshTokenBody,
        response: { 204: Type.Null(), ...bodyProblems },
      },
    },
    async (request, reply) => {
      await sessions.end(request.body.refreshToken)
      return reply.code(204).send(null)
    },
  )
}
