/**
 * Access tokens: JWTs, signed with Ed25519, P-256 or RSA, and verified by the algorithm of the key
 * that `kid` names (RFC 7519, RFC 8725). The type of a key determines its algorithm (RFC 7518, RFC
 * 8037). The public halves are published as a JWK set (RFC 7517).
 */
import { createPrivateKey, createPublicKey, sign as cryptoSign, type KeyObject, randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import jwt, { type TokenOrHeader } from '@fastify/jwt'
import type { KeyList } from '@spillway/common/secrets'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { calculateJwkThumbprint, type JWK } from 'jose'
import type { FromSchema } from 'json-schema-to-ts'
import { ApiError } from '../http/problems.js'
import type { TokenBody } from '../schemas/responses.js'
import type { Rotated, TokenSubject } from './sessions.js'

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

// The keys.

export const algorithms = ['EdDSA', 'ES256', 'RS256'] as const
export type Algorithm = (typeof algorithms)[number]

interface SigningKey {
  kid: string
  alg: Algorithm
  /** The header of its tokens, encoded. */
  header: string
  /** Returns the signature in the form of JWS. */
  sign(data: Buffer): Buffer | Promise<Buffer>
}

interface PublicJwk extends JWK {
  kty: string
  kid: string
  alg: Algorithm
  use: 'sig'
}

interface KeySet {
  signing: SigningKey
  /** The public keys as SPKI, in the order of the list. */
  verifying: readonly { kid: string; alg: Algorithm; pem: string }[]
  /** The same keys, in the form that is published. */
  jwks: { keys: PublicJwk[] }
}

const JWT_KEYS = 'SPILLWAY_JWT_KEYS'
const RSA_MIN_BITS = 2_048
const signElsewhere = promisify(cryptoSign)

/** The keys in use. The first key signs, and all keys verify. */
export class SigningKeys implements KeyList {
  readonly setting = JWT_KEYS
  #set: KeySet

  private constructor(set: KeySet) {
    this.#set = set
  }

  /**
   * Parses a comma-separated list of `kid:base64` or `base64` of PKCS#8 DER. A key without an id
   * gets its thumbprint (RFC 7638). Errors never quote a key.
   */
  static async parse(text: string): Promise<SigningKeys> {
    return new SigningKeys(await readKeySet(text))
  }

  get signing(): SigningKey {
    return this.#set.signing
  }

  get verifying(): KeySet['verifying'] {
    return this.#set.verifying
  }

  get jwks(): KeySet['jwks'] {
    return this.#set.jwks
  }

  kids(): string[] {
    return this.#set.verifying.map(({ kid }) => kid)
  }

  /** Replaces the keys, with the same checks as at the start. A new key needs a new id. */
  async replace(text: string): Promise<void> {
    const set = await readKeySet(text)
    const before = new Map(this.#set.verifying.map(({ kid, pem }) => [kid, pem]))
    for (const { kid, pem } of set.verifying)
      if ((before.get(kid) ?? pem) !== pem) throw new Error(`${JWT_KEYS} has another key as "${kid}" than before`)
    this.#set = set
  }
}

async function readKeySet(text: string): Promise<KeySet> {
  const keys = await Promise.all(text.split(',').map(readKey))
  const [first] = keys
  if (first === undefined) throw new Error(`${JWT_KEYS} holds no key`)
  if (new Set(keys.map(({ jwk }) => jwk.kid)).size < keys.length) throw new Error(`${JWT_KEYS} names a key id twice`)
  const { kid, alg } = first.jwk
  // The type is JWT, because many decoders refuse at+jwt (RFC 9068) by default.
  const header = Buffer.from(JSON.stringify({ alg, typ: 'JWT', kid })).toString('base64url')
  return {
    signing: { kid, alg, header, sign: (data) => sign(data, first.key, alg) },
    verifying: keys.map(({ jwk: { kid, alg }, pem }) => ({ kid, alg, pem })),
    jwks: { keys: keys.map(({ jwk }) => jwk) },
  }
}

async function readKey(entry: string): Promise<{ key: KeyObject; pem: string; jwk: PublicJwk }> {
  const [, named, encoded = ''] = /^\s*(?:([\w-]{1,64}):)?([A-Za-z0-9+/_-]+={0,2})\s*$/.exec(entry) ?? []
  const key = readPrivateKey(encoded)
  const alg = key && algorithmOf(key)
  if (key === undefined || alg === undefined) {
    throw new Error(
      `${JWT_KEYS} must be a comma-separated list of kid:base64 or base64, each an Ed25519, P-256 or RSA key ` +
        `(of ${RSA_MIN_BITS} bits or more) in PKCS#8 DER`,
    )
  }
  const publicKey = createPublicKey(key)
  const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString()
  const { kty = '', ...parts } = publicKey.export({ format: 'jwk' })
  const kid = named ?? (await calculateJwkThumbprint({ kty, ...parts }))
  return { key, pem, jwk: { kty, ...parts, kid, alg, use: 'sig' } }
}

function readPrivateKey(encoded: string): KeyObject | undefined {
  try {
    return createPrivateKey({ key: Buffer.from(encoded, 'base64'), format: 'der', type: 'pkcs8' })
  } catch {
    return undefined
  }
}

/** The algorithm of a key; undefined for a key that cannot sign tokens here. */
function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject): Algorithm | undefined {
  const { namedCurve, modulusLength = 0 } = asymmetricKeyDetails ?? {}
  if (type === 'ed25519') return 'EdDSA'
  if (namedCurve === 'prime256v1') return 'ES256'
  if (type === 'rsa' && modulusLength >= RSA_MIN_BITS) return 'RS256'
  return undefined
}

/** RSA signs in a thread of the pool, in 0.3 to 4 ms. The others are faster without a thread. */
function sign(data: Buffer, key: KeyObject, alg: Algorithm): Buffer | Promise<Buffer> {
  if (alg === 'EdDSA') return cryptoSign(null, data, key)
  if (alg === 'ES256') return cryptoSign('sha256', data, { key, dsaEncoding: 'ieee-p1363' })
  return signElsewhere('sha256', data, key)
}
