/** The sessions of the signed-in user, and the user. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import type { RoutePlugin } from '../operations/public-operation.js'
import { ApiError } from '../plugins/errors.js'
import { SessionsBody, UserBody } from '../schemas/bodies.js'
import { anyProblem, bodyProblems, limitProblem, problemResponse, unauthorizedProblem } from '../schemas/responses.js'
import { requireAccessToken, UUID } from '../sessions/access-token.js'
import { LISTED_MAX } from '../sessions/sessions.js'

const SessionParams = objectOf({ id: { type: 'string', pattern: UUID.source } })

export const sessionRoutes: RoutePlugin = async (app, { sessions, audit }) => {
  app.addHook('onRequest', requireAccessToken)
  app.addHook('onRequest', app.limitRefreshNetwork)
  app.addHook('preHandler', app.limitAccount)
  const config = { priority: 'promised' } as const
  const described = { tags: ['Sessions'], security: [{ accessToken: [] }] }
  const problems = { 401: unauthorizedProblem, 429: limitProblem, ...anyProblem }

  // A session that was ended elsewhere may not list or end others.
  app.addHook('preHandler', async ({ user }) => {
    await sessions.userOf({ sessionId: user.sid, userId: user.sub })
  })

  app.get(
    '/v1/me/sessions',
    {
      config,
      schema: {
        ...described,
        operationId: 'listSessions',
        summary: 'Where I am logged in',
        description: `The newest first, at most ${LISTED_MAX}.`,
        response: { 200: SessionsBody, ...problems },
      },
    },
    async ({ user }) => {
      const live = await sessions.list(user.sub)
      return { sessions: live.map((session) => ({ ...session, current: session.id === user.sid })) }
    },
  )

  app.delete(
    '/v1/me/sessions',
    {
      config,
      schema: {
        ...described,
        operationId: 'endOtherSessions',
        summary: 'Log out everywhere else',
        description: 'Ends all other sessions of the account.',
        response: { 204: { type: 'null' }, ...problems, ...bodyProblems },
      },
    },
    async ({ user, ip, id: requestId }, reply) => {
      const whom = { userId: user.sub, sessionId: user.sid, requestId }
      const ended = await sessions.endOthers({ userId: user.sub, keptSessionId: user.sid })
      if (ended > 0) audit.record({ event: 'end_other_sessions', outcome: 'ok', ...whom, ip })
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/v1/me/sessions/:id',
    {
      config,
      schema: {
        ...described,
        operationId: 'endSession',
        summary: 'End one of my sessions',
        params: SessionParams,
        response: { 204: { type: 'null' }, 404: problemResponse, ...problems, ...bodyProblems },
      },
    },
    async ({ user, params, ip, id: requestId }, reply) => {
      const whom = { userId: user.sub, sessionId: params.id }
      if (!(await sessions.endOne(whom))) throw new ApiError('session_not_found')
      audit.record({ event: 'end_session', outcome: 'ok', ...whom, ip, requestId })
      return reply.code(204).send(null)
    },
  )
}

// GET /v1/me: the signed-in user.

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
