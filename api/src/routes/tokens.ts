/** POST /v1/token/refresh and POST /v1/logout. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyRequest } from 'fastify'
import type { RoutePlugin } from '../operations/public-operation.js'
import { storedNetworkOf } from '../plugins/client-network.js'
import { ApiError } from '../plugins/errors.js'
import { TokenBody } from '../schemas/bodies.js'
import { bodyProblems, limitProblem, unauthorizedProblem } from '../schemas/responses.js'

const RefreshTokenBody = {
  title: 'RefreshToken',
  ...objectOf({ refreshToken: { type: 'string', minLength: 1, maxLength: 256 } }),
} as const

export const tokenRoutes: RoutePlugin = async (app, { sessions, tokenIssuer, tokenCarrier, audit }) => {
  const { isCookie, shownBy } = tokenCarrier
  const body = isCookie ? {} : { body: RefreshTokenBody }
  /** Before anything is counted: a made-up token costs neither a count nor a query. */
  const requireRefreshToken = async (request: FastifyRequest) => {
    if (!sessions.isOurs(shownBy(request))) throw new ApiError('invalid_refresh_token')
  }

  app.post(
    '/v1/token/refresh',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'refreshTokens',
        tags: ['Sessions'],
        summary: 'Trade a refresh token for a new pair',
        description:
          'The old token becomes invalid. It returns the same successor again for some seconds, for concurrent requests, and after a lost answer ' +
          'from the same network until the successor is used. Any other use of it ends the session.',
        ...body,
        response: { 200: TokenBody, 401: unauthorizedProblem, 429: limitProblem, ...bodyProblems },
      },
      preHandler: [requireRefreshToken, app.limitRefreshNetwork, app.limitSession],
    },
    async (request, reply) => {
      const { ip, id: requestId } = request
      const refreshed = await sessions.refresh({ token: shownBy(request), network: storedNetworkOf(ip) })
      if (refreshed === 'invalid') throw new ApiError('invalid_refresh_token')
      if ('refreshToken' in refreshed) {
        const { headers, body } = tokenCarrier.answer(await tokenIssuer.issue(refreshed))
        return reply.headers(headers).send(body)
      }
      audit.record({ event: 'refresh_token_reuse', outcome: 'refresh_token_reused', ...refreshed, ip, requestId })
      throw new ApiError('invalid_refresh_token', { reason: 'refresh_token_reused' })
    },
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
        ...body,
        response: { 204: { type: 'null' }, 429: limitProblem, ...bodyProblems },
      },
      preHandler: async (request, reply) => {
        if (sessions.isOurs(shownBy(request))) await app.limitRefreshNetwork(request, reply)
        else request.isInVain = true
      },
    },
    async (request, reply) => {
      const { ip, id: requestId } = request
      const ended = await sessions.end(shownBy(request))
      if (ended !== undefined) audit.record({ event: 'logout', outcome: 'ok', ...ended, ip, requestId })
      return reply.code(204).headers(tokenCarrier.ended).send(null)
    },
  )
}
