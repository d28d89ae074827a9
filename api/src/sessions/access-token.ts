/** Access tokens: JWTs signed with EdDSA, verified by the key id they name (RFC 7519, RFC 8037). */
import jwt, { type TokenOrHeader } from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../problems/errors.js'
import type { TokenBody } from '../schemas/bodies.js'
import type { SigningKeys } from './signing-keys.js'

const CLAIMS = ['iss', 'aud', 'exp', 'sub', 'sid']
/** The form of user and session ids. PostgreSQL fails on any other text in a uuid column. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface AccessTokenOptions {
  keys: SigningKeys
  issuer: string
  /** The `aud` claim. */
  audience: string
  ttlS: number
}

export const accessTokenPlugin = fp(
  async (app: FastifyInstance, { keys, issuer, audience, ttlS }: AccessTokenOptions) => {
    await app.register(jwt, {
      secret: {
        private: keys.signing.privateKey,
        public: async (_request: FastifyRequest, token: TokenOrHeader) => {
          const key = keys.publicKey(String(token.header.kid))
          if (key === undefined) throw new ApiError('invalid_token')
          return key
        },
      },
      decode: { complete: true },
      sign: { algorithm: 'EdDSA', kid: keys.signing.kid, iss: issuer, aud: audience, expiresIn: ttlS },
      // `allowedIss` and `allowedAud` accept tokens without the claim, unless it is required.
      verify: { algorithms: ['EdDSA'], allowedIss: issuer, allowedAud: audience, requiredClaims: CLAIMS },
    })
  },
  { name: 'access-token' },
)

/** `onRequest` hook for routes that need a signed-in user; sets `request.user` to the claims. */
export async function requireAccessToken(request: FastifyRequest): Promise<void> {
  try {
    await request.jwtVerify()
  } catch {
    // The cause is left out: it may quote the token.
    throw new ApiError('invalid_token')
  }
  if (!isUuid(request.user.sub) || !isUuid(request.user.sid)) throw new ApiError('invalid_token')
}

/** The library declares the types of claims and does not check them. */
function isUuid(claim: unknown): boolean {
  return typeof claim === 'string' && UUID.test(claim)
}

/** The body that answers a login or a refresh: a signed access token beside the refresh token. */
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

declare module '@fastify/jwt' {
  interface FastifyJWT {
    payload: { sub: string; sid: string }
    user: { sub: string; sid: string }
  }
}
