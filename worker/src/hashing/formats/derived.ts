/** Recipes of derived keys; undefined for a part that was not read, or that no maker writes. */
import { type Pbkdf2Recipe, pbkdf2Digests, type ScryptRecipe } from '../methods/recipe.js'

/**
 * Usual lengths of keys. A key of another length is a truncated text, unless the text states the
 * length: a shorter key is the beginning of a longer one, and would still match.
 */
const KEY_BYTES = [16, 20, 24, 32, 48, 50, 64, 128, 256, 512]
const SALT_MAX_BYTES = 1_024
const ITERATIONS_MAX = 2 ** 31 - 1

export interface Pbkdf2Parts {
  digest: string
  iterations: string | number
  salt?: Buffer | undefined
  key?: Buffer | undefined
  /** How many bytes the key must have; `digest` as many as the digest [any usual length]. */
  keyBytes?: number | 'digest' | undefined
}

export function pbkdf2Recipe({
  digest,
  iterations: count,
  salt,
  key,
  keyBytes,
}: Pbkdf2Parts): Pbkdf2Recipe | undefined {
  const iterations = Number(count)
  if (!isDigest(digest) || salt === undefined || key === undefined || !hasLength(key, keyBytes, digest))
    return undefined
  if (iterations < 1 || iterations > ITERATIONS_MAX || salt.length > SALT_MAX_BYTES) return undefined
  return { method: 'pbkdf2', digest, iterations, salt, key }
}

function isDigest(name: string): name is Pbkdf2Recipe['digest'] {
  return Object.hasOwn(pbkdf2Digests, name)
}

function hasLength(key: Buffer, wanted: Pbkdf2Parts['keyBytes'], digest: Pbkdf2Recipe['digest']): boolean {
  if (wanted === undefined) return KEY_BYTES.includes(key.length)
  return key.length === (wanted === 'digest' ? pbkdf2Digests[digest] : wanted)
}

export interface ScryptParts {
  cost: number
  blockSize: string | number
  parallelization: string | number
  salt?: Buffer | undefined
  key?: Buffer | undefined
  keyBytes?: number
}

/** RFC 7914, 2: the cost is a power of two above 1. */
export function scryptRecipe({ cost, salt, key, keyBytes, ...others }: ScryptParts): ScryptRecipe | undefined {
  const [blockSize, parallelization] = [Number(others.blockSize), Number(others.parallelization)]
  if (salt === undefined || key === undefined || salt.length > SALT_MAX_BYTES) return undefined
  const isPossible = cost > 1 && Number.isInteger(Math.log2(cost)) && blockSize >= 1 && parallelization >= 1
  const isWhole = keyBytes === undefined ? KEY_BYTES.includes(key.length) : key.length === keyBytes
  return isPossible && isWhole ? { method: 'scrypt', cost, blockSize, parallelization, salt, key } : undefined
}
