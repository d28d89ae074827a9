// Fresh keys, in the forms that the environment takes.
import { generateKeyPairSync, randomBytes } from 'node:crypto'

/** One entry of SPILLWAY_SEAL_KEYS. */
export function newSealKey(kid = 'seal-1'): string {
  return `${kid}:${randomBytes(32).toString('base64')}`
}

/** One entry of SPILLWAY_JWT_KEYS. */
export function newSigningKey(kid = 'sign-1'): string {
  const { privateKey } = generateKeyPairSync('ed25519')
  return `${kid}:${privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')}`
}
