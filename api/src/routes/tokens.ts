/** POST /v1/token/refresh and POST /v1/logout. */
import { TokenBody } from '../schemas/bodies.js'
import { bodyProblems, limitProblem, unauthorizedProblem } from '../schemas/responses.js'
import type { RoutePlugin } from './deps.js'

const RefreshTokenBody = {
  title: 'RefreshToken',
  type: 'object',
  properties: { refreshToken: { type: 'string', minLength: 1, maxLength: 256 } },
  required: ['refreshToken'],
  additionalProperties: false,
} as const

export const tokenRoutes: RoutePlugin = async (app, { sessions, issueTokens }) => {
  app.post(
    '/v1/token/refresh',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'refreshTokens',
        tags: ['Sessions'],
        summary: 'Trade a refresh token for a new pair',
        description:
          'The old token becomes invalid. For some seconds it returns the same successor again, for concurrent requests. Any later use of ' +
          'it ends the session.',
        body: RefreshTokenBody,
        response: { 200: TokenBody, 401: unauthorizedProblem, 429: limitProblem, ...bodyProblems },
      },
      onRequest: app.limitRefreshAddress,
      preHandler: app.limitSession,
    },
    async (request) => issueTokens(await sessions.refresh(request.body.refreshToken)),
  )

  app.post(
    '/v1/logout',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'logout',
        tags: ['Sessions'],
        summary: 'End the session of a refresh token',
        description: '204 also for an unknown or invalid token.',
        body: RefreshTokenBody,
        response: { 204: { type: 'null' }, 429: limitProblem, ...bodyProblems },
      },
      onRequest: app.limitRefreshAddress,
    },
    async (request, reply) => {
      await sessions.end(request.body.refreshToken)
      return reply.code(204).send(null)
    },
  )
}
