/** The signed-in user, and the user's sessions. */

import { objectOf } from '@spillway/queue/wire/object-schema'
import { ApiError, orUnknown } from '../http/problems.js'
import {
  anyProblem,
  bodyProblems,
  limitProblem,
  problemResponse,
  SessionsBody,
  UserBody,
  unauthorizedProblem,
} from '../schemas/responses.js'
import type { RoutePlugin } from '../servers.js'
import { requireAccessToken, UUID } from '../sessions/access-tokens.js'
import { LISTED_MAX } from '../sessions/sessions.js'

const SessionParams = objectOf({ id: { type: 'string', pattern: UUID.source } })

export const meRoutes: RoutePlugin = async (app, deps) => {
  const { sessions } = deps
  app.addHook('onRequest', requireAccessToken)

  app.get(
    '/v1/me',
    {
      config: { priority: 'continued' },
      schema: {
        operationId: 'getMe',
        tags: ['Accounts'],
        summary: 'Get the signed-in user',
        security: [{ accessToken: [] }],
        response: { 200: UserBody, 401: unauthorizedProblem, ...anyProblem },
      },
    },
    async ({ user: { sub, sid } }) => {
      const { id, email, createdAt } = await sessions.userOf({ sessionId: sid, userId: sub })
      return { id, email, createdAt }
    },
  )
  await app.register(sessionRoutes, deps)
}

const sessionRoutes: RoutePlugin = async (app, { sessions, audit, limits }) => {
  app.addHook('onRequest', limits.refreshNetwork)
  app.addHook('preHandler', limits.account)
  const config = { priority: 'continued' } as const
  const described = { tags: ['Sessions'], security: [{ accessToken: [] }] }
  const problems = { 401: unauthorizedProblem, 429: limitProblem, ...anyProblem }

  // A session that was ended elsewhere must not list or end other sessions.
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
        summary: 'List my sessions',
        description: `Lists sessions, newest first, at most ${LISTED_MAX}.`,
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
      config: { ...config, event: 'end_other_sessions' },
      schema: {
        ...described,
        operationId: 'endOtherSessions',
        summary: 'End my other sessions',
        description: 'Ends all sessions of the account except the session of the request.',
        response: { 204: { type: 'null' }, ...problems, ...bodyProblems },
      },
    },
    async (request, reply) => {
      const { user, ip, id: requestId } = request
      const whom = { userId: user.sub, sessionId: user.sid }
      request.changes = whom
      const ended = await orUnknown(sessions.endOthers({ userId: user.sub, keptSessionId: user.sid }))
      if (ended > 0) audit.record({ event: 'end_other_sessions', outcome: 'ok', ...whom, ip, requestId })
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/v1/me/sessions/:id',
    {
      config: { ...config, event: 'end_session' },
      schema: {
        ...described,
        operationId: 'endSession',
        summary: 'End one of my sessions',
        params: SessionParams,
        response: { 204: { type: 'null' }, 404: problemResponse, ...problems, ...bodyProblems },
      },
    },
    async (request, reply) => {
      const { user, params, ip, id: requestId } = request
      const whom = { userId: user.sub, sessionId: params.id }
      request.changes = whom
      if (!(await orUnknown(sessions.endOne(whom)))) throw new ApiError('session_not_found')
      audit.record({ event: 'end_session', outcome: 'ok', ...whom, ip, requestId })
      return reply.code(204).send(null)
    },
  )
}
