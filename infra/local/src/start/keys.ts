// Fresh keys, in the forms that the environment takes.
import { generateKeyPairSync, randomBytes } from 'node:crypto'

/** One entry of SPILLWAY_SEAL_KEYS. */
export function newSealKey(kid = 'seal-1'): string {
  return `${kid}:${randomBytes(32).toString('base64')}`
}

const keyPairs = {
  EdDSA: () => generateKeyPairSync('ed25519'),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
}

/** One entry of SPILLWAY_JWT_KEYS. Every verifier with discovery takes P-256. */
export function newSigningKey(kid = 'sign-1', alg: keyof typeof keyPairs = 'ES256'): string {
  const { privateKey } = keyPairs[alg]()
  return `${kid}:${privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')}`
}
