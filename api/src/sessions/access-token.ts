/** Access tokens: JWTs, signed and verified by the algorithm of the key that their `kid` names (RFC 7519, RFC 8725). */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { errors, type JWTPayload, jwtVerify } from 'jose'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../problems/errors.js'
import type { TokenBody } from '../schemas/bodies.js'
import type { Rotated, TokenSubject } from './refresh-rotation.js'
import { algorithms, type SigningKeys } from './signing-keys.js'

const REQUIRED = ['iss', 'aud', 'exp', 'sub', 'sid']
/** The form of user and session ids. PostgreSQL fails on any other text in a uuid column. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface AccessTokenOptions {
  keys: SigningKeys
  issuer: string
  /** The `aud` claim. */
  audience: string
  ttlS: number
  /** In addition to those of every token. */
  claims: readonly OptionalClaim[]
}

/** The claims of a verified token. */
export interface AccessClaims extends JWTPayload {
  /** The user. */
  sub: string
  /** The session. */
  sid: string
}

export interface AccessTokens {
  /** Returns the body that answers a login or a refresh: a signed access token beside the refresh token. */
  issue: IssueTokens
  /** Returns the claims of a token; undefined if it is not valid. Whether its session goes on is not asked. */
  verify(token: string): Promise<AccessClaims | undefined>
}

export type IssueTokens = (session: Rotated) => Promise<FromSchema<typeof TokenBody>>

/** Claims that TOKEN_CLAIMS may add. */
export const optionalClaimNames = ['email', 'email_verified'] as const
export type OptionalClaim = (typeof optionalClaimNames)[number]
const optionalClaims: Record<OptionalClaim, (session: TokenSubject) => unknown> = {
  email: ({ email }) => email,
  email_verified: ({ isConfirmed }) => isConfirmed,
}

/** The names of all claims. */
export function claimsOf(more: readonly OptionalClaim[]): string[] {
  return [...['iss', 'aud', 'sub', 'sid', 'jti', 'iat', 'exp', 'auth_time'], ...more]
}

export function createAccessTokens({ keys, issuer, audience, ttlS, claims }: AccessTokenOptions): AccessTokens {
  const { signing } = keys
  // Type JWT: many decoders refuse at+jwt (RFC 9068) unless they are told of it.
  const header = encode({ alg: signing.alg, typ: 'JWT', kid: signing.kid })

  return {
    async issue({ refreshToken, ...session }) {
      const iat = Math.floor(Date.now() / 1_000)
      const ids = { sub: session.userId, sid: session.sessionId, jti: randomUUID() }
      const more = Object.fromEntries(claims.map((name) => [name, optionalClaims[name](session)]))
      const times = { iat, exp: iat + ttlS, auth_time: session.authTimeS }
      const signed = `${header}.${encode({ iss: issuer, aud: audience, ...ids, ...times, ...more })}`
      const signature = await signing.sign(Buffer.from(signed))
      return {
        accessToken: `${signed}.${signature.toString('base64url')}`,
        refreshToken,
        tokenType: 'Bearer',
        expiresIn: ttlS,
      }
    },

    async verify(token) {
      try {
        const { payload } = await jwtVerify(
          token,
          ({ kid = '', alg }) => {
            const key = keys.publicKey(kid)
            if (key?.alg !== alg) throw new errors.JWKSNoMatchingKey()
            return key
          },
          { algorithms: [...algorithms], issuer, audience, requiredClaims: REQUIRED },
        )
        const { sub, sid } = payload
        return isUuid(sub) && isUuid(sid) ? { ...payload, sub, sid } : undefined
      } catch {
        // The cause is left out: it may quote the token.
        return undefined
      }
    },
  }
}

function encode(json: object): string {
  return Buffer.from(JSON.stringify(json)).toString('base64url')
}

function isUuid(claim: unknown): claim is string {
  return typeof claim === 'string' && UUID.test(claim)
}

export const accessTokenPlugin = fp(
  async (app: FastifyInstance, { verify }: Pick<AccessTokens, 'verify'>) => {
    app.decorateRequest('user')
    app.decorate('verifyAccessToken', verify)
  },
  { name: 'access-token' },
)

/** `onRequest` hook for routes that need a signed-in user; sets `request.user` to the claims. */
export async function requireAccessToken(request: FastifyRequest): Promise<void> {
  const [, token = ''] = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(request.headers.authorization ?? '') ?? []
  const claims = await request.server.verifyAccessToken(token)
  if (claims === undefined) throw new ApiError('invalid_token')
  request.user = claims
}

declare module 'fastify' {
  interface FastifyInstance {
    verifyAccessToken: AccessTokens['verify']
  }
  interface FastifyRequest {
    /** The caller of a route that requires an access token. */
    user: AccessClaims
  }
}
