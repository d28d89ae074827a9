// Plain digests, salted or not: too fast to rest in a table. Each is hashed with argon2id by the
// workers, and the account stored with that (worker/src/hashing/formats/wrapped.ts).
import { UserError } from '@spillway/infra/processes/command-line'
import { unpadded } from '@spillway/queue/wire/stored-hash'
import { plainRecipe, symfonyHash } from '@spillway/worker/hashing/formats/digests'
import { hexBytes, paddedBase64 } from '@spillway/worker/hashing/formats/format'
import { type Wrapping, wrappingOf } from '@spillway/worker/hashing/formats/wrapped'
import type { PlainDigest } from '@spillway/worker/hashing/methods/digest-programs'

/** Digests in hexadecimal and nothing else, which do not say what they are. */
export interface BareDigest {
  digest: PlainDigest
  /** The place of a salt: before or after the password, or as the key of an HMAC. */
  place: 'before' | 'after' | 'key'
}

/** How to wrap such a digest; undefined for other texts, `too-long` for too long a salt. */
export function wrappingOfBare(of: BareDigest, text: string, salt: Buffer): Wrapping | 'too-long' | undefined {
  const recipe = /^([0-9a-f]+|[0-9A-F]+)$/.test(text)
    ? plainRecipe({ digest: of.digest, place: of.place, salt }, text.toLowerCase(), 'hex')
    : undefined
  return recipe && (wrappingOf([recipe]) ?? 'too-long')
}

// Stored hashes of tables that keep salt and digest in columns of their own: `--hash` says how they
// were made.

export const saltEncodings = ['text', 'hex', 'base64'] as const
export type SaltEncoding = (typeof saltEncodings)[number]

/** Makes a stored hash. A digest that is neither hexadecimal nor base64 stays, to be refused. */
export type ComposeHash = (digest: string, salt: Buffer) => string

const FORMS: { pattern: RegExp; setting: (numbers: number[], bytes: number) => string }[] = [
  { pattern: /^pbkdf2-sha(?:1|256|512):(\d+)$/, setting: ([rounds], bytes) => `i=${rounds},l=${bytes}` },
  { pattern: /^scrypt:(\d+):(\d+):(\d+)$/, setting: ([n = 0, r, p]) => `ln=${Math.log2(n)},r=${r},p=${p}` },
  { pattern: /^argon2id?:(\d+):(\d+):(\d+)$/, setting: ([m, t, p]) => `v=19$m=${m},t=${t},p=${p}` },
]

export function composeHash(form: string | undefined): ComposeHash | undefined {
  if (form === undefined) return undefined
  if (form === 'symfony') return (digest, salt) => symfonyHash(salt, digest)
  for (const { pattern, setting } of FORMS) {
    const match = pattern.exec(form)
    if (match === null) continue
    const [name] = form.split(':')
    const numbers = match.slice(1).map(Number)
    return (digest, salt) => {
      const key = hexBytes(digest) ?? paddedBase64(digest)
      if (key === undefined) return digest
      return ['', name, setting(numbers, key.length), unpadded(salt), unpadded(key)].join('$')
    }
  }
  throw new UserError(
    `--hash takes pbkdf2-sha256:ROUNDS (or sha1, sha512), scrypt:N:R:P, argon2id:KIB:PASSES:LANES or symfony, not "${form}".`,
  )
}

/** The bytes of a salt; undefined for one that is not so encoded. */
export function saltBytes(text: string, encoding: SaltEncoding): Buffer | undefined {
  if (text === '') return Buffer.alloc(0)
  if (encoding === 'hex') return hexBytes(text)
  return encoding === 'base64' ? paddedBase64(text) : Buffer.from(text)
}
