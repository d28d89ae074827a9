/**
 * Firebase Authentication's modified scrypt: the signer key of the project, encrypted with a key that scrypt derives from the password
 * (github.com/firebase/scrypt). Signer key and salt separator are the project's and stand in no row: a stored hash is
 * `$firebase-scrypt$ln=14,r=8$<salt>$<hash>`, in base64, as `pnpm accounts import --preset firebase` writes it.
 */
import { createCipheriv, timingSafeEqual } from 'node:crypto'
import type { Verifier } from '../algorithm.js'
import type { FirebaseProject } from './firebase-project.js'
import { deriveKey, isAccepted, type ScryptHash, type ScryptLimits } from './scrypt.js'

const PATTERN = /^\$firebase-scrypt\$ln=(\d{1,2}),r=(\d{1,3})\$([A-Za-z0-9+/]*={0,2})\$([A-Za-z0-9+/]+={0,2})$/
const AES_KEY_BYTES = 32
/** Each key encrypts one text alone. */
const COUNTER = Buffer.alloc(16)

export function firebaseScrypt(options: ScryptLimits & FirebaseProject): Verifier {
  const { threads, memoryLimitBytes, signerKey, saltSeparator } = options

  function read(text: string): { scrypt: ScryptHash; hash: Buffer } | undefined {
    const [, logCost, blockSize, salt = '', encoded = ''] = PATTERN.exec(text) ?? []
    const hash = Buffer.from(encoded, 'base64')
    if (logCost === undefined || hash.length !== signerKey.length) return undefined
    const scrypt: ScryptHash = {
      ...{ cost: 2 ** Number(logCost), blockSize: Number(blockSize), parallelization: 1 },
      salt: Buffer.concat([Buffer.from(salt, 'base64'), saltSeparator]),
      key: Buffer.alloc(AES_KEY_BYTES),
    }
    return isAccepted(scrypt, memoryLimitBytes) ? { scrypt, hash } : undefined
  }

  return {
    family: 'firebase-scrypt',
    engine: 'node:crypto',
    algorithm: () => 'scrypt',
    recognizes: (storedHash) => read(storedHash) !== undefined,
    async verify(password, storedHash) {
      const stored = read(storedHash)
      if (stored === undefined) return false
      const key = await threads.run(() => deriveKey(password, stored.scrypt))
      return timingSafeEqual(createCipheriv('aes-256-ctr', key, COUNTER).update(signerKey), stored.hash)
    },
  }
}

/** The stored hash of an exported account; salt and hash in base64, with either alphabet. */
export function firebaseHash(cost: { logCost: number; blockSize: number }, salt: string, hash: string): string {
  const base64 = (text: string) => text.replaceAll('-', '+').replaceAll('_', '/')
  return `$firebase-scrypt$ln=${cost.logCost},r=${cost.blockSize}$${base64(salt)}$${base64(hash)}`
}
