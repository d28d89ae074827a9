// Forged access tokens of every kind known to have worked somewhere (RFC 8725), from a good one.
import { createPrivateKey, createPublicKey, createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { exportJWK, type JWTHeaderParameters, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'

/** Of an entry of SPILLWAY_JWT_KEYS. */
export function privateKeyOf(entry: string): KeyObject {
  const [, encoded = ''] = entry.split(':')
  return createPrivateKey({ key: Buffer.from(encoded, 'base64'), format: 'der', type: 'pkcs8' })
}

export interface Genuine {
  /** The key that signed it. */
  key: KeyObject
  kid: string
  alg: string
  payload: JWTPayload
  accessToken: string
}

interface Signer {
  key?: KeyObject
  header?: JWTHeaderParameters
}

/** The keys of who forges, by algorithm. */
const mine: Record<string, KeyObject> = {
  EdDSA: generateKeyPairSync('ed25519').privateKey,
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  RS256: generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey,
}

export function createForger({ key, kid, alg, payload, accessToken }: Genuine) {
  const header = { alg, kid, typ: 'JWT' }

  const signed = (change: object, { key: by = key, header: head = header }: Signer = {}) =>
    new SignJWT({ ...payload, ...change }).setProtectedHeader(head).sign(by)

  /** By name. No verifier may take any. Those of the right key fail by what is changed. */
  async function forgeries(): Promise<Record<string, string>> {
    const publicKey = createPublicKey(key)
    const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString()
    const jwk = await exportJWK(publicKey)
    const [head = '', body = '', signature = ''] = accessToken.split('.')
    const nowS = Math.floor(Date.now() / 1_000)
    const someoneElse = encode({ ...payload, sub: '00000000-0000-4000-8000-000000000000' })
    const hs256 = (secret: string | Buffer) =>
      signed({}, { key: createSecretKey(Buffer.from(secret)), header: { alg: 'HS256', kid } })
    const made: Record<string, string> = {
      'alg none': new UnsecuredJWT(payload).encode(),
      'alg NONE': `${encode({ alg: 'NONE', kid })}.${body}.`,
      'alg none with the signature': `${encode({ alg: 'none', kid })}.${body}.${signature}`,
      'HS256 with the public key as PEM': await hs256(pem),
      'HS256 with the public key as DER': await hs256(publicKey.export({ format: 'der', type: 'spki' })),
      'HS256 with the bytes of the key': await hs256(Buffer.from(jwk.x ?? jwk.n ?? '', 'base64url')),
      'another audience': await signed({ aud: 'someone-else' }),
      'no audience': await signed({ aud: undefined }),
      'another issuer': await signed({ iss: 'https://elsewhere.example' }),
      'no issuer': await signed({ iss: undefined }),
      // Verifiers allow for clocks that differ: Spring a minute, by default.
      expired: await signed({ iat: nowS - 4_000, exp: nowS - 400 }),
      'not valid yet': await signed({ nbf: nowS + 4_000 }),
      // By the right key: whoever does not know a critical header must refuse it.
      'an unknown crit header': await new SignJWT(payload)
        .setProtectedHeader({ ...header, crit: ['unknown'], unknown: 1 })
        .sign(key, { crit: { unknown: true } }),
      'a changed payload': `${head}.${someoneElse}.${signature}`,
      'no signature': `${head}.${body}.`,
    }
    for (const [by, forger] of Object.entries(mine)) {
      const as = { alg: by, typ: 'JWT' }
      const jwkOfForger = await exportJWK(createPublicKey(forger))
      made[`${by} by another key with the same id`] = await signed({}, { key: forger, header: { ...as, kid } })
      made[`${by} by another key with another id`] = await signed({}, { key: forger, header: { ...as, kid: 'other' } })
      made[`${by} with an id of every object`] = await signed(
        {},
        { key: forger, header: { ...as, kid: 'constructor' } },
      )
      for (const [name, more] of Object.entries({
        jwk: { jwk: jwkOfForger },
        jku: { jku: 'https://elsewhere.example/jwks.json' },
      })) {
        made[`${by} with ${name}`] = await signed({}, { key: forger, header: { ...as, kid, ...more } })
      }
    }
    return made
  }

  return { signed, forgeries }
}

function encode(json: object): string {
  return Buffer.from(JSON.stringify(json)).toString('base64url')
}
