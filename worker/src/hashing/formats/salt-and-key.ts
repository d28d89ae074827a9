/**
 * scrypt of node:crypto, only salt and key in hexadecimal. The texts do not say whether the salt was used as text or decoded, nor the cost.
 * Whatever a maker may have meant is tried, so that a wrong password takes it all.
 */
import type { Password, ScryptRecipe } from '../methods/recipe.js'
import { scryptRecipe } from './derived.js'
import type { Format, Reading } from './format.js'
import { hexBytes, utf8Bytes } from './texts.js'

/** The defaults of crypto.scrypt. */
const NODE = { cost: 16_384, blockSize: 8, parallelization: 1 }
/** Lucia 2 and 3, Better Auth. */
const LARGER = { cost: 16_384, blockSize: 16, parallelization: 1 }

const SALT = { least: 16, most: 128 }
const KEY = { least: 64, most: 1_024 }
const PAIR = /^([0-9a-f]{16,1024})([:.$])([0-9a-f]{16,1024})$/

export const saltAndKey: Format = {
  name: 'scrypt as salt:key',
  makers: 'applications of node:crypto, Better Auth',
  read(text) {
    const [, first = '', , second = ''] = PAIR.exec(text) ?? []
    // The key is the longer one.
    const [salt, key] = first.length <= second.length ? [first, second] : [second, first]
    if (salt.length < SALT.least || salt.length > SALT.most || key.length < KEY.least || key.length > KEY.most)
      return undefined
    const [asText, decoded, keyBytes] = [utf8Bytes(salt), hexBytes(salt), hexBytes(key)]
    const recipes = [
      scryptRecipe({ ...NODE, salt: asText, key: keyBytes }),
      ...(keyBytes?.length === 64 ? [scryptRecipe({ ...LARGER, salt: asText, key: keyBytes })] : []),
      scryptRecipe({ ...NODE, salt: decoded, key: keyBytes }),
    ]
    return readingOf(recipes, (password) => unique([password, normalized(password)]))
  },
}

/** Lucia 1 and 2 made salts of 16 characters, its 3 of 32. */
const LUCIA = /^(s2:)?([0-9A-Za-z]{16}|[0-9a-f]{32}):([0-9a-f]{128})$/

export const lucia: Format = {
  name: 'Lucia scrypt',
  makers: 'Lucia 1 to 3',
  read(text) {
    const [, version, salt = '', key = ''] = LUCIA.exec(text) ?? []
    const cost = version === undefined ? NODE : LARGER
    const recipe = scryptRecipe({ ...cost, salt: utf8Bytes(salt), key: hexBytes(key), keyBytes: 64 })
    // A salt whose characters are digits of hexadecimal is one of node:crypto, too.
    if (version === undefined && saltAndKey.read(text, NO_CONTEXT) !== undefined) return undefined
    return readingOf([recipe], (password) => unique([normalized(password), password]))
  },
}

const NO_CONTEXT = { read: () => undefined, firebase: undefined, peppers: [] }

function readingOf(given: (ScryptRecipe | undefined)[], textsOf: NonNullable<Reading['textsOf']>): Reading | undefined {
  const [first, ...others] = given.filter((recipe) => recipe !== undefined)
  return first && { recipes: [first, ...others], textsOf }
}

function normalized(password: Password): Password {
  return typeof password === 'string' ? password.normalize('NFKC') : password
}

function unique(texts: Password[]): Password[] {
  return [...new Set(texts)]
}
