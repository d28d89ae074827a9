/** scrypt, and Firebase's modification of it (github.com/firebase/scrypt). */
import type { FirebaseRecipe, Password, ScryptRecipe } from '../methods/recipe.js'
import {
  base64Pair,
  type Format,
  formatOf,
  hexBytes,
  isUsualKey,
  paddedBase64,
  type Reading,
  SALT_MAX_BYTES,
  urlBase64,
  utf8Bytes,
} from './format.js'

interface Parts {
  cost: number
  blockSize: string | number
  parallelization: string | number
  salt?: Buffer | undefined
  key?: Buffer | undefined
  /** Length of the key [any usual length]. */
  keyBytes?: number
}

/** Undefined for a part that was not read. RFC 7914, 2: the cost is a power of two above 1. */
export function scryptRecipe({ cost, salt, key, keyBytes, ...others }: Parts): ScryptRecipe | undefined {
  const [blockSize, parallelization] = [Number(others.blockSize), Number(others.parallelization)]
  if (salt === undefined || key === undefined || salt.length > SALT_MAX_BYTES) return undefined
  const isPossible = cost > 1 && Number.isInteger(Math.log2(cost)) && blockSize >= 1 && parallelization >= 1
  const isWhole = keyBytes === undefined ? isUsualKey(key) : key.length === keyBytes
  return isPossible && isWhole ? { method: 'scrypt', cost, blockSize, parallelization, salt, key } : undefined
}

/** No memory holds a cost of this logarithm: Ory Kratos writes the cost itself. */
const LOG_COST_MAX = 40

/** The defaults of crypto.scrypt. */
const NODE = { cost: 16_384, blockSize: 8, parallelization: 1 }
/** Lucia 2 and 3, Better Auth. */
const LARGER = { cost: 16_384, blockSize: 16, parallelization: 1 }

const BASE64 = '([A-Za-z0-9+/_-]+={0,2})'

/**
 * Salt and key in hexadecimal. The texts tell neither the cost nor whether the salt was used as text
 * or decoded: every known way is tried.
 */
const saltAndKey = formatOf(
  'scrypt as salt:key',
  'applications of node:crypto, Better Auth',
  /^([0-9a-f]{16,1024})[:.$]([0-9a-f]{16,1024})$/,
  ([first, second]) => {
    // The key is longer.
    const [salt, key] = first.length <= second.length ? [first, second] : [second, first]
    if (salt.length > 128 || key.length < 64) return undefined
    const [asText, decoded, keyBytes] = [utf8Bytes(salt), hexBytes(salt), hexBytes(key)]
    const recipes = [
      scryptRecipe({ ...NODE, salt: asText, key: keyBytes }),
      ...(keyBytes?.length === 64 ? [scryptRecipe({ ...LARGER, salt: asText, key: keyBytes })] : []),
      scryptRecipe({ ...NODE, salt: decoded, key: keyBytes }),
    ]
    return readingOf(recipes, (password) => [password, normalized(password)])
  },
)

export const scryptFormats: readonly Format[] = [
  formatOf(
    'scrypt',
    'PHC strings, passlib, Ory Kratos, Zitadel',
    /^\$scrypt\$ln=(\d{1,8}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/,
    ([logCost, blockSize, parallelization, salt, key]) => {
      const cost = Number(logCost) > LOG_COST_MAX ? Number(logCost) : 2 ** Number(logCost)
      return scryptRecipe({ cost, blockSize, parallelization, ...base64Pair(salt, key) })
    },
  ),
  formatOf(
    'Django scrypt',
    'Django',
    /^scrypt\$(\d{1,8})\$([^$]{1,128})\$(\d{1,3})\$(\d{1,3})\$([A-Za-z0-9+/]+=*)$/,
    ([cost, salt, blockSize, parallelization, key]) => {
      const parts = { blockSize, parallelization, salt: utf8Bytes(salt), key: paddedBase64(key) }
      return scryptRecipe({ cost: Number(cost), ...parts, keyBytes: 64 })
    },
  ),
  formatOf(
    'Werkzeug scrypt',
    'Werkzeug, Flask',
    /^scrypt:(\d{1,8}):(\d{1,3}):(\d{1,3})\$([^$]{1,128})\$([0-9a-f]+)$/,
    ([cost, blockSize, parallelization, salt, key]) => {
      const parts = { blockSize, parallelization, salt: utf8Bytes(salt), key: hexBytes(key) }
      return scryptRecipe({ cost: Number(cost), ...parts, keyBytes: 64 })
    },
  ),
  saltAndKey,
  // Lucia 1 and 2 made salts of 16 characters, its 3 of 32.
  formatOf(
    'Lucia scrypt',
    'Lucia 1 to 3',
    /^(s2:)?([0-9A-Za-z]{16}|[0-9a-f]{32}):([0-9a-f]{128})$/,
    ([version, salt, key], context, text) => {
      // Without its version, a salt of hexadecimal digits is also of node:crypto.
      if (version === '' && saltAndKey.read(text, context) !== undefined) return undefined
      const cost = version === '' ? NODE : LARGER
      const recipe = scryptRecipe({ ...cost, salt: utf8Bytes(salt), key: hexBytes(key), keyBytes: 64 })
      return readingOf([recipe], (password) => [normalized(password), password])
    },
  ),
  // Signer key and salt separator are the project's. Written by `pnpm accounts import --preset
  // firebase`.
  formatOf(
    'Firebase scrypt',
    'Firebase Authentication',
    /^\$firebase-scrypt\$ln=(\d{1,2}),r=(\d{1,3})\$([A-Za-z0-9+/]*={0,2})\$([A-Za-z0-9+/]+={0,2})$/,
    ([logCost, blockSize, salt, encrypted], { firebase: project }) =>
      project && firebaseRecipe({ logCost, blockSize, salt, encrypted, ...project }),
  ),
  // Each row contains the keys of the project.
  formatOf(
    'Ory firescrypt',
    'Ory Kratos, of accounts that came from Firebase',
    new RegExp(`^\\$firescrypt\\$ln=(\\d{1,2}),r=(\\d{1,3}),p=1\\$${Array(4).fill(BASE64).join('\\$')}$`),
    ([logCost, blockSize, salt, encrypted, separator, key]) => {
      const [saltSeparator, signerKey] = [urlBase64(separator), urlBase64(key)]
      if (saltSeparator === undefined || signerKey === undefined) return undefined
      return firebaseRecipe({ logCost, blockSize, salt, encrypted, signerKey, saltSeparator })
    },
  ),
]

function readingOf(
  given: (ScryptRecipe | undefined)[],
  textsOf: (password: Password) => Password[],
): Reading | undefined {
  const [first, ...others] = given.filter((recipe) => recipe !== undefined)
  return first && { recipes: [first, ...others], textsOf: (password) => [...new Set(textsOf(password))] }
}

function normalized(password: Password): Password {
  return typeof password === 'string' ? password.normalize('NFKC') : password
}

interface FirebaseParts {
  logCost: string
  blockSize: string
  salt: string
  encrypted: string
  signerKey: Buffer
  saltSeparator: Buffer
}

function firebaseRecipe({
  logCost,
  blockSize,
  signerKey,
  saltSeparator,
  ...texts
}: FirebaseParts): FirebaseRecipe | undefined {
  const salt = texts.salt === '' ? Buffer.alloc(0) : urlBase64(texts.salt)
  const encrypted = urlBase64(texts.encrypted)
  const cost = 2 ** Number(logCost)
  if (salt === undefined || encrypted?.length !== signerKey.length || cost < 2 || Number(blockSize) < 1)
    return undefined
  return {
    ...{ method: 'firebase', cost, blockSize: Number(blockSize), parallelization: 1 },
    ...{ salt: Buffer.concat([salt, saltSeparator]), signerKey, encrypted },
  }
}

/** The stored hash of an exported account; salt and hash in base64, with either alphabet. */
export function firebaseHash(cost: { logCost: number; blockSize: number }, salt: string, hash: string): string {
  const base64 = (text: string) => text.replaceAll('-', '+').replaceAll('_', '/')
  return `$firebase-scrypt$ln=${cost.logCost},r=${cost.blockSize}$${base64(salt)}$${base64(hash)}`
}
