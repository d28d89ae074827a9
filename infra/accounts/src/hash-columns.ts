// Stored hashes of tables that keep salt and digest in columns of their own: `--hash` says how they were made.
import { unpadded } from '@spillway/client/protocol/base64'
import { UserError } from '@spillway/local/processes/command-line'
import { symfonyHash } from '@spillway/worker/hashing/formats/symfony'
import { hexBytes, paddedBase64 } from '@spillway/worker/hashing/formats/texts'

export const saltEncodings = ['text', 'hex', 'base64'] as const
export type SaltEncoding = (typeof saltEncodings)[number]

/** Makes a stored hash of a digest, in hexadecimal or base64, and a salt. A digest that is neither stays as it is, to be refused. */
export type ComposeHash = (digest: string, salt: Buffer) => string

const FORMS: { pattern: RegExp; setting: (numbers: number[], bytes: number) => string }[] = [
  { pattern: /^pbkdf2-sha(?:1|256|512):(\d+)$/, setting: ([rounds], bytes) => `i=${rounds},l=${bytes}` },
  { pattern: /^scrypt:(\d+):(\d+):(\d+)$/, setting: ([n = 0, r, p]) => `ln=${Math.log2(n)},r=${r},p=${p}` },
  { pattern: /^argon2id?:(\d+):(\d+):(\d+)$/, setting: ([m, t, p]) => `v=19$m=${m},t=${t},p=${p}` },
]

/** Throws a UserError for an unknown form. */
export function composeHash(form: string | undefined): ComposeHash | undefined {
  if (form === undefined) return undefined
  if (form === 'symfony') return (digest, salt) => symfonyHash(salt.toString(), digest)
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
