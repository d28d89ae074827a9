/**
 * The keys that sign access tokens: Ed25519, P-256 or RSA, and their public halves as a JWK set
 * (RFC 7517). The type of a key determines its algorithm (RFC 7518, RFC 8037).
 */
import { createPrivateKey, createPublicKey, sign as cryptoSign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { KeyList } from '@spillway/common/secrets'
import { calculateJwkThumbprint, type JWK } from 'jose'

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
