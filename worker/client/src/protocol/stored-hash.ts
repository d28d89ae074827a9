/** Stored hashes as text: what algorithm and cost one was made with, and how that compares with a policy. Hashes nothing. */
import type { Argon2Cost, HashPolicy } from './policy.js'

export type StoredHash =
  | ({ algorithm: 'argon2id' | 'argon2i' | 'argon2d'; version: number } & Argon2Cost)
  | { algorithm: 'bcrypt'; cost: number }

/** Versions 16 and 19; salts of at least 8 bytes and digests of at least 4 (RFC 9106, 3.1), in base64 without padding. */
const PHC = /^\$(argon2id|argon2i|argon2d)\$v=(16|19)\$m=(\d+),t=(\d+),p=(\d+)\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{6,}$/
const MODULAR_CRYPT = /^\$2[aby]\$(\d{2})\$[./A-Za-z0-9]{53}$/

/** Parses argon2's PHC string format and bcrypt's modular crypt format; undefined for any other text. */
export function parseStoredHash(text: string): StoredHash | undefined {
  const cost = MODULAR_CRYPT.exec(text)?.[1]
  if (cost !== undefined) return { algorithm: 'bcrypt', cost: Number(cost) }
  const [, algorithm, version, memoryKib, time, parallelism] = PHC.exec(text) ?? []
  if (algorithm !== 'argon2id' && algorithm !== 'argon2i' && algorithm !== 'argon2d') return undefined
  return {
    ...{ algorithm, version: Number(version) },
    ...{ memoryKib: Number(memoryKib), time: Number(time), parallelism: Number(parallelism) },
  }
}

/**
 * Whether a stored hash is weaker than the policy. A stronger one is kept. Under argon2id, every bcrypt hash and the older variants of
 * argon2 are below; under bcrypt, argon2 is not. A text of no known format is below any policy.
 */
export function isBelow(storedHash: string, policy: HashPolicy): boolean {
  const stored = parseStoredHash(storedHash)
  if (stored === undefined) return true
  if (policy.algorithm === 'bcrypt') return stored.algorithm === 'bcrypt' && stored.cost < policy.cost
  if (stored.algorithm !== 'argon2id' || stored.version !== 19) return true
  return stored.memoryKib < policy.memoryKib || stored.time < policy.time
}

/** When a match is hashed anew: wherever it is not of the policy, stronger ones as well; where it is weaker; or not at all. */
export const rehashModes = ['always', 'weaker', 'never'] as const
export type RehashMode = (typeof rehashModes)[number]

/** Whether a match of this stored hash is to be hashed anew. */
export function isDue(storedHash: string, policy: HashPolicy, mode: RehashMode): boolean {
  if (mode === 'never') return false
  return mode === 'always' ? !isOf(storedHash, policy) : isBelow(storedHash, policy)
}

/** Whether a hash was made with the algorithm and cost of the policy, and no others. */
export function isOf(hash: string, policy: HashPolicy): boolean {
  const made = parseStoredHash(hash)
  if (made?.algorithm !== policy.algorithm) return false
  if (policy.algorithm === 'bcrypt') return made.algorithm === 'bcrypt' && made.cost === policy.cost
  if (made.algorithm === 'bcrypt') return false
  const { memoryKib, time, parallelism } = policy
  return made.version === 19 && made.memoryKib === memoryKib && made.time === time && made.parallelism === parallelism
}
