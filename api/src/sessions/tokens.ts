/** POST /v1/token/refresh and POST /v1/logout. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyRequest } from 'fastify'
import { storedNetworkOf } from '../http/client-network.js'
import { ApiError } from '../http/errors.js'
import type { RoutePlugin } from '../passwords/deps.js'
import { TokenBody } from '../schemas/bodies.js'
import { bodyProblems, limitProblem, unauthorizedProblem } from '../schemas/responses.js'

const RefreshTokenBody = {
  title: 'RefreshToken',
  ...objectOf({ refreshToken: { type: 'string', minLength: 1, maxLength: 256 } }),
} as const

export const tokenRoutes: RoutePlugin = async (app, { sessions, tokenIssuer, tokenCarrier, audit, limits }) => {
  const { isCookie, shownBy } = tokenCarrier
  const body = isCookie ? {} : { body: RefreshTokenBody }
  app.addHook('preHandler', async (request) => {
    request.sessionId = sessions.idOf(shownBy(request))
  })
  /** Runs before anything is counted, so that a made-up token costs neither a count nor a query. */
  const requireRefreshToken = async ({ sessionId }: FastifyRequest) => {
    if (sessionId === undefined) throw new ApiError('invalid_refresh_token')
  }

  app.post(
    '/v1/token/refresh',
    {
      config: { priority: 'continued', event: 'refresh_token_reuse' },
      schema: {
        operationId: 'refreshTokens',
        tags: ['Sessions'],
        summary: 'Exchange a refresh token for new tokens',
        description:
          'The old token becomes invalid. For some seconds it still returns the same successor, for concurrent requests. After a lost answer, it ' +
          'does so from the same network until the successor is used. Any other use of the old token ends the session.',
        ...body,
        response: { 200: TokenBody, 401: unauthorizedProblem, 429: limitProblem, ...bodyProblems },
      },
      preHandler: [requireRefreshToken, limits.refreshNetwork, limits.session],
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
      config: { priority: 'continued', event: 'logout' },
      schema: {
        operationId: 'logout',
        tags: ['Sessions'],
        summary: 'End the session of a refresh token',
        description: 'The answer is also 204 for an unknown or invalid token.',
        ...body,
        response: { 204: { type: 'null' }, 429: limitProblem, ...bodyProblems },
      },
      preHandler: async (request, reply) => {
        if (request.sessionId !== undefined) await limits.refreshNetwork(request, reply)
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

declare module 'fastify' {
  interface FastifyRequest {
    /** Of the refresh token that was shown. */
    sessionId?: string | undefined
  }
}
