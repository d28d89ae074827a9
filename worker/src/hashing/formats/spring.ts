/** Spring Security's encoders, with the prefix of its DelegatingPasswordEncoder or bare. */
import type { DigestRecipe } from '../methods/recipe.js'
import { digestOf, plainRecipe } from './digests.js'
import { type Format, formatOf, hexBytes, paddedBase64, weak } from './format.js'
import { pbkdf2Recipe } from './pbkdf2.js'
import { scryptRecipe } from './scrypt.js'

export const springFormats: readonly Format[] = [
  // Salts of 8 bytes, 185,000 rounds of SHA-1; since 5.8 of 16 bytes, 310,000 of SHA-256.
  formatOf(
    'Spring PBKDF2',
    'Spring Security',
    /^(?:\{pbkdf2\})?([0-9a-f]{80})$|^(?:\{pbkdf2@SpringSecurity_v5_8\})?([0-9a-f]{96})$/,
    ([first, second], _, text) => {
      const [bytes, saltBytes] = first === '' ? [hexBytes(second), 16] : [hexBytes(first), 8]
      const cost = first === '' ? { digest: 'sha256', iterations: 310_000 } : { digest: 'sha1', iterations: 185_000 }
      const parts = { salt: bytes?.subarray(0, saltBytes), key: bytes?.subarray(saltBytes), keyBytes: 32 }
      const recipe = pbkdf2Recipe({ ...cost, ...parts })
      // Without a prefix, StandardPasswordEncoder writes the same text.
      return recipe && { recipes: text === first ? [standardRecipe(text), recipe] : [recipe] }
    },
  ),
  // The logarithm of the cost, the block size and the parallelization are one number.
  formatOf(
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
  ),
  formatOf('Spring StandardPasswordEncoder', 'Spring Security', /^\{sha256\}([0-9a-f]{80})$/, ([hex]) =>
    standardRecipe(hex),
  ),
  // The digest of the password and its salt, which has braces around it.
  weak(
    formatOf(
      'Spring MessageDigestPasswordEncoder',
      'Spring Security',
      /^\{(MD5|SHA-1|SHA-256|SHA-384|SHA-512)\}(\{[A-Za-z0-9+/]{43}=\})?([0-9a-f]{32,128})$/,
      ([name, salt, hex]) => {
        const digest = digestOf(name)
        return digest && plainRecipe({ digest, salt: Buffer.from(salt), place: 'after' }, hex, 'hex')
      },
    ),
  ),
]

/** SHA-256, 1,024 times, of a salt of 8 bytes and the password. */
function standardRecipe(hex: string): DigestRecipe {
  const salt = Buffer.from(hex.slice(0, 16), 'hex')
  const program = { kind: 'plain', digest: 'sha256', salt, place: 'before', rounds: 1_024 } as const
  return { method: 'digest', program, text: hex.slice(16), encoding: 'hex' }
}
