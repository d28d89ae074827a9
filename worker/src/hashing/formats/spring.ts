/** Spring Security's encoders, with the prefix of its DelegatingPasswordEncoder or bare. */
import type { DigestRecipe } from '../methods/recipe.js'
import { pbkdf2Recipe, scryptRecipe } from './derived.js'
import { type Format, formatOf, weak } from './format.js'
import { digestOf, plainRecipe } from './plain.js'
import { hexBytes, paddedBase64 } from './texts.js'

/** Salts of 8 bytes, 185,000 rounds of SHA-1; since 5.8 of 16 bytes, 310,000 of SHA-256. The key has 32 bytes. */
const PBKDF2 = [
  { pattern: /^(?:\{pbkdf2\})?([0-9a-f]{80})$/, saltBytes: 8, digest: 'sha1', iterations: 185_000 },
  {
    pattern: /^(?:\{pbkdf2@SpringSecurity_v5_8\})?([0-9a-f]{96})$/,
    ...{ saltBytes: 16, digest: 'sha256', iterations: 310_000 },
  },
]

export const springPbkdf2: Format = {
  name: 'Spring PBKDF2',
  makers: 'Spring Security',
  read(text) {
    for (const { pattern, saltBytes, digest, iterations } of PBKDF2) {
      const bytes = hexBytes(pattern.exec(text)?.[1] ?? '')
      const parts = { salt: bytes?.subarray(0, saltBytes), key: bytes?.subarray(saltBytes) }
      const recipe = pbkdf2Recipe({ digest, iterations, ...parts, keyBytes: 32 })
      // Without a prefix, StandardPasswordEncoder writes the same text.
      const standard = saltBytes === 8 && !text.startsWith('{') ? standardRecipe(text) : undefined
      if (recipe !== undefined) return { recipes: standard === undefined ? [recipe] : [standard, recipe] }
    }
    return undefined
  },
}

/** StandardPasswordEncoder: SHA-256, 1,024 times, of a salt of 8 bytes and the password. */
export const springStandard = formatOf(
  'Spring StandardPasswordEncoder',
  'Spring Security',
  /^\{sha256\}([0-9a-f]{80})$/,
  ([hex]) => standardRecipe(hex),
)

function standardRecipe(hex: string): DigestRecipe {
  const salt = Buffer.from(hex.slice(0, 16), 'hex')
  const program = { kind: 'plain', digest: 'sha256', salt, place: 'before', rounds: 1_024 } as const
  return { method: 'digest', program, text: hex.slice(16), encoding: 'hex' }
}

/** The logarithm of the cost, the block size and the parallelization are one number. */
export const springScrypt = formatOf(
  'Spring scrypt',
  'Spring Security',
  /^(?:\{scrypt(?:@SpringSecurity_v5_8)?\})?\$([0-9a-f]{5,8})\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/,
  ([parameters, salt, key]) => {
    const number = Number.parseInt(parameters, 16)
    return scryptRecipe({
      ...{ cost: 2 ** (number >>> 16), blockSize: (number >>> 8) & 0xff, parallelization: number & 0xff },
      ...{ salt: paddedBase64(salt), key: paddedBase64(key), keyBytes: 32 },
    })
  },
)

/** MessageDigestPasswordEncoder: the digest of the password and its salt, which has braces around it. */
export const springDigest = weak(
  formatOf(
    'Spring MessageDigestPasswordEncoder',
    'Spring Security',
    /^\{(MD5|SHA-1|SHA-256|SHA-384|SHA-512)\}(\{[A-Za-z0-9+/]{43}=\})?([0-9a-f]{32,128})$/,
    ([name, salt, hex]) => {
      const digest = digestOf(name)
      return digest && plainRecipe({ digest, salt: Buffer.from(salt), place: 'after' }, hex, 'hex')
    },
  ),
)
