/**
 * scrypt of node:crypto, only salt and key in hexadecimal. The texts tell neither the cost nor whether
 * the salt was used as text or decoded. Every known way is tried, so that a wrong password takes all.
 */
import type { Password, ScryptRecipe } from '../methods/recipe.js'
import { scryptRecipe } from './derived.js'
import { formatOf, type Reading } from './format.js'
import { hexBytes, utf8Bytes } from './texts.js'

/** The defaults of crypto.scrypt. */
const NODE = { cost: 16_384, blockSize: 8, parallelization: 1 }
/** Lucia 2 and 3, Better Auth. */
const LARGER = { cost: 16_384, blockSize: 16, parallelization: 1 }

const SALT = { least: 16, most: 128 }
const KEY = { least: 64, most: 1_024 }
const PAIR = /^([0-9a-f]{16,1024})[:.$]([0-9a-f]{16,1024})$/

export const saltAndKey = formatOf(
  'scrypt as salt:key',
  'applications of node:crypto, Better Auth',
  PAIR,
  ([first, second]) => {
    // The key is longer.
    const [salt, key] = first.length <= second.length ? [first, second] : [second, first]
    if (!isSaltAndKey(salt, key)) return undefined
    const [asText, decoded, keyBytes] = [utf8Bytes(salt), hexBytes(salt), hexBytes(key)]
    const recipes = [
      scryptRecipe({ ...NODE, salt: asText, key: keyBytes }),
      ...(keyBytes?.length === 64 ? [scryptRecipe({ ...LARGER, salt: asText, key: keyBytes })] : []),
      scryptRecipe({ ...NODE, salt: decoded, key: keyBytes }),
    ]
    return readingOf(recipes, (password) => [password, normalized(password)])
  },
)

function isSaltAndKey(salt: string, key: string): boolean {
  const hasLength = ({ length }: string, { least, most }: typeof SALT) => length >= least && length <= most
  return hasLength(salt, SALT) && hasLength(key, KEY)
}

/** Lucia 1 and 2 made salts of 16 characters, its 3 of 32. */
export const lucia = formatOf(
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
)

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
