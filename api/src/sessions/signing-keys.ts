/** The keys that sign access tokens: Ed25519 (RFC 8037), each with its key id, and their public halves as a JWK set (RFC 7517). */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'

export interface SigningKeys {
  /** The key that signs. */
  signing: { kid: string; privateKey: string }
  /** PEM of a public key, by key id. */
  publicKey(kid: string): string | undefined
  jwks: { keys: PublicJwk[] }
}

export interface PublicJwk {
  kty: string
  crv: string
  x: string
  kid: string
  alg: 'EdDSA'
  use: 'sig'
}

/**
 * Parses `kid:base64` of PKCS#8 DER, comma-separated. The first key signs, all verify. To rotate, put the new key second everywhere,
 * then first, and drop the old one when its last token has expired. Errors never quote a key.
 */
export function parseSigningKeys(text: string): SigningKeys {
  const entries = text.split(',').map((entry) => {
    const [, kid, encoded] = /^\s*([\w-]{1,32}):([A-Za-z0-9+/_=-]+)\s*$/.exec(entry) ?? []
    const key = encoded === undefined ? undefined : readPrivateKey(encoded)
    if (kid === undefined || key === undefined) {
      throw new Error(
        'SPILLWAY_JWT_KEYS must be a comma-separated list of kid:base64, each an Ed25519 key in PKCS#8 DER',
      )
    }
    return { kid, key }
  })
  const publicKeys = new Map(entries.map(({ kid, key }) => [kid, createPublicKey(key)]))
  if (publicKeys.size < entries.length) throw new Error('SPILLWAY_JWT_KEYS names a key id twice')
  const [first] = entries
  if (first === undefined) throw new Error('SPILLWAY_JWT_KEYS holds no key')
  const pems = new Map(
    [...publicKeys].map(([kid, key]) => [kid, key.export({ format: 'pem', type: 'spki' }).toString()]),
  )
  return {
    signing: { kid: first.kid, privateKey: first.key.export({ format: 'pem', type: 'pkcs8' }).toString() },
    publicKey: (kid) => pems.get(kid),
    jwks: { keys: [...publicKeys].map(([kid, key]) => publicJwk(kid, key)) },
  }
}

function readPrivateKey(encoded: string): KeyObject | undefined {
  try {
    const key = createPrivateKey({ key: Buffer.from(encoded, 'base64'), format: 'der', type: 'pkcs8' })
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}

function publicJwk(kid: string, key: KeyObject): PublicJwk {
  const { kty = '', crv = '', x = '' } = key.export({ format: 'jwk' })
  return { kty, crv, x, kid, alg: 'EdDSA', use: 'sig' }
}
