/** POST /v1/introspect: whether an access token is valid and its session alive (RFC 7662). */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../plugins/errors.js'
import { bodyProblems, limitProblem, unauthorizedProblem } from '../schemas/responses.js'
import type { AccessClaims } from '../sessions/access-token.js'
import type { Sessions } from '../sessions/sessions.js'

const FORM = 'application/x-www-form-urlencoded'

const Introspection = {
  title: 'Introspection',
  description: 'Whether a token is good, and if so its claims (RFC 7662)',
  type: 'object',
  properties: { active: { type: 'boolean' }, token_type: { type: 'string', description: 'Bearer' } },
  required: ['active'],
  additionalProperties: true,
  examples: [{ active: false }],
} as const

export const introspectionRoute: FastifyPluginAsyncJsonSchemaToTs<{ Options: { sessions: Sessions } }> = async (
  app,
  { sessions },
) => {
  app.addContentTypeParser(FORM, { parseAs: 'string' }, (_request, body: string, done) => {
    const form = new URLSearchParams(body)
    // RFC 6749, 3.1: no parameter more than once.
    if (form.getAll('token').length > 1) done(new ApiError('malformed_request'))
    else done(null, Object.fromEntries(form))
  })
  app.post(
    '/v1/introspect',
    {
      config: { priority: 'promised' },
      schema: {
        operationId: 'introspectToken',
        tags: ['Tokens'],
        summary: 'Is this access token good?',
        description:
          'Answers `active: false` alone for any text that is no valid access token, and for a session that has ended.',
        security: [{ serviceKey: [] }],
        consumes: [FORM],
        body: {
          title: 'TokenToIntrospect',
          type: 'object',
          properties: {
            token: { type: 'string', maxLength: 8_192 },
            token_type_hint: { type: 'string', maxLength: 64 },
          },
          required: ['token'],
        },
        response: { 200: Introspection, 401: unauthorizedProblem, 429: limitProblem, ...bodyProblems },
      },
      onRequest: [app.requireServiceKey, app.limitService],
    },
    async (request) => {
      const claims = await request.jwtVerify<AccessClaims>().catch(() => undefined)
      if (claims === undefined || !(await sessions.goesOn({ sessionId: claims.sid, userId: claims.sub })))
        return { active: false }
      return { ...claims, active: true, token_type: 'Bearer' }
    },
  )
}

/** The token of a request that is valid by the schema. */
export function tokenToIntrospect({ body }: FastifyRequest): string | undefined {
  return typeof body === 'object' && body !== null && 'token' in body ? String(body.token) : undefined
}
