/** Access tokens: JWTs, verified by the algorithm of the key that `kid` names (RFC 7519, 8725). */
import { randomUUID } from 'node:crypto'
import jwt from '@fastify/jwt'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../plugins/errors.js'
import type { TokenBody } from '../schemas/bodies.js'
import type { Rotated, TokenSubject } from './refresh-rotation.js'
import type { SigningKeys } from './signing-keys.js'

const REQUIRED = ['iss', 'aud', 'exp', 'sub', 'sid']
/** The key id in the header of a token that is not yet verified. */
const KID = /^[\w-]{1,64}$/
/** The form of user and session ids. PostgreSQL fails on any other text in a uuid column. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface AccessTokenOptions {
  keys: SigningKeys
  issuer: string
  /** The `aud` claim. */
  audience: string
}

interface IssuedTokenOptions extends AccessTokenOptions {
  ttlS: number
  /** Optional claims that these tokens carry as well. */
  claims: readonly OptionalClaim[]
}

/** The claims of a verified token. */
interface AccessClaims {
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
    const { alg, kid, sign } = keys.signing
    const iat = Math.floor(Date.now() / 1_000)
    const ids = { sub: session.userId, sid: session.sessionId, jti: randomUUID() }
    const more = Object.fromEntries(claims.map((name) => [name, optionalClaims[name](session)]))
    const times = { iat, exp: iat + ttlS, auth_time: session.authTimeS }
    // Type JWT: many decoders refuse at+jwt (RFC 9068) by default.
    const header = encode({ alg, typ: 'JWT', kid })
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

/** Verifies by the key that a token names, which takes tokens of its own algorithm alone. */
export const accessTokenPlugin = fp(
  async (app: FastifyInstance, { keys, issuer, audience }: AccessTokenOptions) => {
    await app.register(jwt, {
      // For any token: each is verified by the key that it names.
      secret: { public: keys.verifying[0]?.pem ?? '' },
      // `allowedIss` and `allowedAud` accept tokens without the claim, unless it is required.
      verify: { allowedIss: issuer, allowedAud: audience, requiredClaims: REQUIRED },
    })
    /** By the keys of now: SIGHUP replaces them. */
    const verify = (token: string): Record<string, unknown> => {
      const kid = kidOf(token)
      const key = keys.verifying.find((known) => known.kid === kid)
      return key === undefined ? {} : app.jwt.verify(token, { key: key.pem, algorithms: [key.alg] })
    }
    app.decorate('verifyAccessToken', (token) => {
      try {
        const { sub, sid, ...claims } = verify(token)
        return isUuid(sub) && isUuid(sid) ? { ...claims, sub, sid } : undefined
      } catch {
        // The cause is left out: it may quote the token.
        return undefined
      }
    })
  },
  { name: 'access-token' },
)

/** Throws for a header that is not JSON. */
function kidOf(token: string): string {
  const [header = ''] = token.split('.', 1)
  const { kid }: { kid?: unknown } = JSON.parse(Buffer.from(header, 'base64url').toString())
  return typeof kid === 'string' && KID.test(kid) ? kid : ''
}

/** `onRequest` hook for routes that need a signed-in user; sets `request.user` to the claims. */
export async function requireAccessToken(request: FastifyRequest): Promise<void> {
  const [, token = ''] = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(request.headers.authorization ?? '') ?? []
  const claims = request.server.verifyAccessToken(token)
  if (claims === undefined) throw new ApiError('invalid_token')
  request.user = claims
}

declare module '@fastify/jwt' {
  interface FastifyJWT {
    /** After `requireAccessToken`. */
    user: AccessClaims
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Returns the claims of a valid token. Does not check whether its session is alive. */
    verifyAccessToken(token: string): AccessClaims | undefined
  }
}
