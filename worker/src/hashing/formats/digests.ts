/** Digests, salted or not: most are too fast to be stored as they are, however they are written. */
import { type PlainDigest, plainDigests, type SaltedDigest } from '../methods/digest-programs.js'
import type { DigestEncoding, DigestRecipe } from '../methods/recipe.js'
import { type Format, formatOf, hexBytes, paddedBase64, weak } from './format.js'

const DIGEST_BYTES: Record<PlainDigest, number> = { md5: 16, sha1: 20, sha256: 32, sha384: 48, sha512: 64 }

/** Undefined for a text of another length. */
export function plainRecipe(
  of: SaltedDigest,
  text: string,
  encoding: DigestEncoding,
  rounds = 1,
): DigestRecipe | undefined {
  const length = Buffer.alloc(DIGEST_BYTES[of.digest]).toString(encoding === 'hex' ? 'hex' : 'base64').length
  if (text.length !== length) return undefined
  return { method: 'digest', program: { kind: 'plain', rounds, ...of }, text, encoding }
}

const LDAP_SALT_BYTES = { least: 4, most: 64 }

export const digestFormats: readonly Format[] = [
  formatOf(
    'Apache Shiro 1',
    'Apache Shiro',
    /^\$shiro1\$(SHA-256|SHA-512|SHA-1|MD5)\$(\d{1,9})\$([A-Za-z0-9+/]*={0,2})\$([A-Za-z0-9+/]+={0,2})$/,
    ([name, count, saltText, encoded]) => {
      const [digest, salt, rounds] = [digestOf(name), paddedBase64(saltText), Number(count)]
      if (digest === undefined || salt === undefined || rounds < 1) return undefined
      return plainRecipe({ digest, salt, place: 'before' }, encoded, 'base64', rounds)
    },
  ),
  // Symfony's defaults, SHA-512 of 5,000 rounds. Its salt is in a column of its own:
  // `pnpm accounts import --hash symfony --salt-column NAME` writes this format.
  formatOf(
    'Symfony message digest',
    'Symfony 2 to 5, FOSUserBundle, Clerk (sha512_symfony)',
    /^\$symfony\$([A-Za-z0-9_-]{0,256})\$([A-Za-z0-9+/]{86}==)$/,
    ([encoded, digest]) => {
      const salt = Buffer.from(encoded, 'base64url')
      // Symfony adds the salt in braces, if there is one.
      const braced = salt.length === 0 ? salt : Buffer.concat([Buffer.from('{'), salt, Buffer.from('}')])
      const of = { digest: 'sha512', salt: braced, place: 'after', behind: 'input' } as const
      return plainRecipe(of, digest, 'base64', 5_000)
    },
  ),
  // RFC 2307 and its successors; without a salt also in hexadecimal, as passlib reads them.
  weak(
    formatOf(
      'LDAP digest',
      'OpenLDAP, 389 Directory Server, Dovecot, passlib',
      /^\{(S)?(MD5|SHA|SHA256|SHA384|SHA512)\}([A-Za-z0-9+/]{22,256}={0,2})$/,
      ([salted, scheme, encoded]) => {
        const digest = digestOf(scheme === 'SHA' ? 'sha1' : scheme)
        if (digest === undefined) return undefined
        const digestBytes = DIGEST_BYTES[digest]
        const isHex = !salted && /^[0-9a-f]+$/.test(encoded) && encoded.length === 2 * digestBytes
        const bytes = isHex ? hexBytes(encoded) : paddedBase64(encoded)
        const salt = bytes?.subarray(digestBytes)
        const [least, most] = salted ? [LDAP_SALT_BYTES.least, LDAP_SALT_BYTES.most] : [0, 0]
        if (bytes === undefined || salt === undefined || salt.length < least || salt.length > most) return undefined
        return plainRecipe(
          { digest, salt, place: 'after' },
          bytes.subarray(0, digestBytes).toString('base64'),
          'base64',
        )
      },
    ),
  ),
  // Two functions write this text: Django puts the salt before the password, Werkzeug uses it as
  // the key of an HMAC.
  weak(
    formatOf(
      'digest with its name and salt',
      'Django, Werkzeug before 2.3, passlib',
      /^(md5|sha1|sha256|sha512)\$([^$]{0,128})\$([0-9a-f]+)$/,
      ([name, saltText, hex]) => {
        const [digest, salt] = [digestOf(name), Buffer.from(saltText)]
        const before = digest && plainRecipe({ digest, salt, place: 'before' }, hex, 'hex')
        const key = digest && plainRecipe({ digest, salt, place: 'key' }, hex, 'hex')
        return before && key && { recipes: [before, key] }
      },
    ),
  ),
]

/** The digest of a name in any case, with or without a hyphen. */
export function digestOf(name: string): PlainDigest | undefined {
  return plainDigests.find((digest) => digest === name.toLowerCase().replace('-', ''))
}

export function symfonyHash(salt: Buffer, digest: string): string {
  return `$symfony$${salt.toString('base64url')}$${digest}`
}
