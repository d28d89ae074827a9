/** ASP.NET Core Identity, and ASP.NET Identity before it: a byte for the version, the parameters, salt and key, in base64. */
import type { Recipe } from '../methods/recipe.js'
import { pbkdf2Recipe } from './derived.js'
import type { Format } from './format.js'
import { paddedBase64 } from './texts.js'

const SHORTEST = 60
const LONGEST = 800
const SALT_BYTES = { least: 16, most: 128 }
const FUNCTIONS = ['sha1', 'sha256', 'sha512']

export const aspNet: Format = {
  name: 'ASP.NET Identity',
  makers: 'ASP.NET Identity 2, ASP.NET Core Identity',
  read(text) {
    const bytes = text.length >= SHORTEST && text.length <= LONGEST ? paddedBase64(text) : undefined
    const recipe = bytes && recipeOf(bytes)
    return recipe && { recipes: [recipe] }
  },
}

function recipeOf(bytes: Buffer): Recipe | undefined {
  if (bytes[0] === 0 && bytes.length === 49)
    return pbkdf2Recipe({ digest: 'sha1', iterations: 1_000, salt: bytes.subarray(1, 17), key: bytes.subarray(17) })
  // In version 3 the function, the iterations and the length of the salt follow as big-endian words.
  if (bytes[0] !== 1) return undefined
  const [digest, saltBytes] = [FUNCTIONS[bytes.readUInt32BE(1)], bytes.readUInt32BE(9)]
  if (digest === undefined || saltBytes < SALT_BYTES.least || saltBytes > SALT_BYTES.most) return undefined
  const keyAt = 13 + saltBytes
  const [salt, key] = [bytes.subarray(13, keyAt), bytes.subarray(keyAt)]
  return pbkdf2Recipe({ digest, iterations: bytes.readUInt32BE(5), salt, key })
}
