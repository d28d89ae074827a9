/** POST /v1/introspect: whether an access token is valid and its session alive (RFC 7662). */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../http/problems.js'
import type { ServiceDeps } from '../passwords/service.js'
import { bodyProblems, limitProblem, unauthorizedProblem } from '../schemas/responses.js'
import type { AccessClaims } from './access-tokens.js'

const FORM = 'application/x-www-form-urlencoded'

const Introspection = {
  title: 'Introspection',
  description: 'Whether a token is valid, and the claims of a valid token (RFC 7662)',
  type: 'object',
  properties: { active: { type: 'boolean' }, token_type: { type: 'string', description: 'Bearer' } },
  required: ['active'],
  additionalProperties: true,
  examples: [{ active: false }],
} as const

export const introspectionRoute: FastifyPluginAsyncJsonSchemaToTs<{ Options: ServiceDeps }> = async (
  app,
  { requireServiceKey, limitService, sessions },
) => {
  app.addContentTypeParser(FORM, { parseAs: 'string' }, (_request, body: string, done) => {
    const form = new URLSearchParams(body)
    // RFC 6749, 3.1: a parameter must not be repeated.
    if (form.getAll('token').length > 1) done(new ApiError('malformed_request'))
    else done(null, Object.fromEntries(form))
  })
  app.post(
    '/v1/introspect',
    {
      config: { priority: 'continued' },
      schema: {
        operationId: 'introspectToken',
        tags: ['Tokens'],
        summary: 'Check an access token',
        description: 'Returns only `active: false` if the token is not a valid access token, or its session has ended.',
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
      onRequest: [requireServiceKey, limitService],
    },
    async (request) => {
      const claims = await request.jwtVerify<AccessClaims>().catch(() => undefined)
      if (claims === undefined || !(await sessions.goesOn({ sessionId: claims.sid, userId: claims.sub })))
        return { active: false }
      return { ...claims, active: true, token_type: 'Bearer' }
    },
  )
}

/** The token of a request that matches the schema. */
export function tokenToIntrospect({ body }: FastifyRequest): string | undefined {
  return typeof body === 'object' && body !== null && 'token' in body ? String(body.token) : undefined
}
