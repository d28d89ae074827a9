/** Access tokens: JWTs, verified by the algorithm of the key that `kid` names (RFC 7519, 8725). */
import { randomUUID } from 'node:crypto'
import jwt, { type TokenOrHeader } from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../http/errors.js'
import type { TokenBody } from '../schemas/bodies.js'
import type { Rotated, TokenSubject } from './sessions.js'
import { algorithms, type SigningKeys } from './signing-keys.js'

const REQUIRED = ['iss', 'aud', 'exp', 'sub', 'sid']
/** The format of user and session ids. PostgreSQL rejects any other text in a uuid column. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface AccessTokenOptions {
  keys: SigningKeys
  issuer: string
  /** The `aud` claim. */
  audience: string
}

interface IssuedTokenOptions extends AccessTokenOptions {
  ttlS: number
  /** Optional claims that these tokens also contain. */
  claims: readonly OptionalClaim[]
}

/** The claims of a verified token. */
export interface AccessClaims {
  /** The user. */
  sub: string
  /** The session. */
  sid: string
  [claim: string]: unknown
}

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

export class TokenIssuer {
  readonly #options: IssuedTokenOptions

  constructor(options: IssuedTokenOptions) {
    this.#options = options
  }

  /** Returns the body that answers a login or a refresh, with a signed access token. */
  async issue({ refreshToken, ...session }: Rotated): Promise<FromSchema<typeof TokenBody>> {
    const { keys, issuer, audience, ttlS, claims } = this.#options
    const { header, sign } = keys.signing
    const iat = Math.floor(Date.now() / 1_000)
    const ids = { sub: session.userId, sid: session.sessionId, jti: randomUUID() }
    const more = Object.fromEntries(claims.map((name) => [name, optionalClaims[name](session)]))
    const times = { iat, exp: iat + ttlS, auth_time: session.authTimeS }
    const signed = `${header}.${encode({ iss: issuer, aud: audience, ...ids, ...times, ...more })}`
    const signature = (await sign(Buffer.from(signed))).toString('base64url')
    return { accessToken: `${signed}.${signature}`, refreshToken, tokenType: 'Bearer', expiresIn: ttlS }
  }
}

function encode(json: object): string {
  return Buffer.from(JSON.stringify(json)).toString('base64url')
}

function isUuid(claim: unknown): claim is string {
  return typeof claim === 'string' && UUID.test(claim)
}

interface AccessTokenPluginOptions extends AccessTokenOptions {
  /** Reads the token of a request [the header Authorization]. */
  tokenOf?(request: FastifyRequest): string | undefined
}

/**
 * Verifies with the key that a token names, which accepts only tokens of its own algorithm.
 * `request.jwtVerify()` sets `request.user` to the claims. It does not check whether the session is
 * alive. @fastify/jwt caches a verifier for each key, by the text of the key.
 */
export const accessTokenPlugin = fp(
  async (app: FastifyInstance, { keys, issuer, audience, tokenOf = bearerOf }: AccessTokenPluginOptions) => {
    await app.register(jwt, {
      secret: {
        /** By the current keys: SIGHUP replaces them. */
        public(_request: FastifyRequest, token: TokenOrHeader, done: (error: Error | null, pem?: string) => void) {
          const { kid, alg } = 'header' in token ? token.header : token
          const key = keys.verifying.find((known) => known.kid === kid && known.alg === alg)
          done(key === undefined ? new ApiError('invalid_token') : null, key?.pem)
        },
      },
      decode: { complete: true },
      // `allowedIss` and `allowedAud` accept tokens without the claim, unless it is required.
      verify: {
        algorithms: [...algorithms],
        allowedIss: issuer,
        allowedAud: audience,
        requiredClaims: REQUIRED,
        extractToken: tokenOf,
      },
      trusted: (_request, { sub, sid }) => isUuid(sub) && isUuid(sid),
    })
  },
  { name: 'access-token' },
)

function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(headers.authorization ?? '')?.[1]
}

/** `onRequest` hook for routes that need a signed-in user. */
export async function requireAccessToken(request: FastifyRequest): Promise<void> {
  await request.jwtVerify().catch(() => {
    // The cause is omitted, because it may quote the token.
    throw new ApiError('invalid_token')
  })
}

declare module '@fastify/jwt' {
  interface FastifyJWT {
    /** Set by `requireAccessToken`. */
    user: AccessClaims
  }
}
