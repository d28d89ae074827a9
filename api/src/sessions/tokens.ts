/** The answer to a login or a refresh: a signed access token beside its refresh token. */
import type { FastifyInstance } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import type { TokenBody } from '../schemas/bodies.js'

export type IssueTokens = (grant: {
  userId: string
  sessionId: string
  refreshToken: string
}) => FromSchema<typeof TokenBody>

export function createTokenIssuer(app: FastifyInstance, options: { accessTokenTtlS: number }): IssueTokens {
  return ({ userId, sessionId, refreshToken }) => ({
    accessToken: app.jwt.sign({ sub: userId, sid: sessionId }),
    refreshToken,
    tokenType: 'Bearer',
    expiresIn: options.accessTokenTtlS,
  })
}
