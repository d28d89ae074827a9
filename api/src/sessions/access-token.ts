/** Access tokens: JWTs signed with EdDSA, verified by the key id they name (RFC 7519, RFC 8037). */
import jwt, { type TokenOrHeader } from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../problems/errors.js'
import type { SigningKeys } from './signing-keys.js'

const CLAIMS = ['iss', 'aud', 'exp', 'sub', 'sid']
/** As the ids of users and sessions are, and as PostgreSQL takes them. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface AccessTokenOptions {
  keys: SigningKeys
  issuer: string
  /** Whom the tokens are for. */
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
      // A claim that is allowed one value may be missing all the same, unless it is required.
      verify: { algorithms: ['EdDSA'], allowedIss: issuer, allowedAud: audience, requiredClaims: CLAIMS },
    })
  },
  { name: 'access-token' },
)

/** Hook for routes that need a signed-in user; leaves the claims in `request.user`. */
export async function requireAccessToken(request: FastifyRequest): Promise<void> {
  try {
    await request.jwtVerify()
  } catch {
    // Whatever was wrong with the token is the same to the client, and may hold parts of it.
    throw new ApiError('invalid_token')
  }
  if (!isUuid(request.user.sub) || !isUuid(request.user.sid)) throw new ApiError('invalid_token')
}

/** The library says what type a claim has and does not check it. */
function isUuid(claim: unknown): boolean {
  return typeof claim === 'string' && UUID.test(claim)
}

declare module '@fastify/jwt' {
  interface FastifyJWT {
    payload: { sub: string; sid: string }
    user: { sub: string; sid: string }
  }
}
