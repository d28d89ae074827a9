/** GET /v1/me: the signed-in user. */

import type { RoutePlugin } from '../operations/deps.js'
import { UserBody } from '../schemas/bodies.js'
import { anyProblem, unauthorizedProblem } from '../schemas/responses.js'
import { requireAccessToken } from '../sessions/access-token.js'

export const meRoutes: RoutePlugin = async (app, { sessions }) => {
  app.addHook('onRequest', requireAccessToken)

  app.get(
    '/v1/me',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'getMe',
        tags: ['Accounts'],
        summary: 'Who am I',
        security: [{ accessToken: [] }],
        response: { 200: UserBody, 401: unauthorizedProblem, ...anyProblem },
      },
    },
    async ({ user: { sub, sid } }) => {
      const user = await sessions.userOf({ sessionId: sid, userId: sub })
      return { id: user.id, email: user.email, createdAt: user.createdAt.toISOString() }
    },
  )
}
