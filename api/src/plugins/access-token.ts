/** Access tokens: JWTs signed with EdDSA, verified by the key id they name (RFC 7519, RFC 8037). */
import jwt, { type TokenOrHeader } from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../errors.js'
import type { SigningKeys } from '../signing-keys.js'

export interface AccessTokenOptions {
  keys: SigningKeys
  issuer: string
  ttlS: number
}

export const accessTokenPlugin = fp(
  async (app: FastifyInstance, { keys, issuer, ttlS }: AccessTokenOptions) => {
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
      sign: { algorithm: 'EdDSA', kid: keys.signing.kid, iss: issuer, expiresIn: ttlS },
      verify: { algorithms: ['EdDSA'], allowedIss: issuer },
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
}

declare module '@fastify/jwt' {
  interface FastifyJWT {
    payload: { sub: string; sid: string }
    user: { sub: string; sid: string }
  }
}
