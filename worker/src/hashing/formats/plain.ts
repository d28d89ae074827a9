/** Plain digests, salted or not: too fast to rest in a table, however they are written. */
import { type PlainDigest, type PlainProgram, plainDigests } from '../methods/digest-programs.js'
import type { DigestEncoding, DigestRecipe } from '../methods/recipe.js'
import type { Format, Reading } from './format.js'
import { hexBytes, paddedBase64 } from './texts.js'

const DIGEST_BYTES: Record<PlainDigest, number> = { md5: 16, sha1: 20, sha256: 32, sha384: 48, sha512: 64 }

/** A digest of one round unless told otherwise; undefined for a text of another length. */
export function plainReading(
  of: Omit<PlainProgram, 'kind' | 'rounds'> & { rounds?: number },
  text: string,
  encoding: DigestEncoding,
): Reading | undefined {
  const recipe = plainRecipe(of, text, encoding)
  return recipe && { recipes: [recipe] }
}

export function plainRecipe(
  of: Omit<PlainProgram, 'kind' | 'rounds'> & { rounds?: number },
  text: string,
  encoding: DigestEncoding,
): DigestRecipe | undefined {
  const length = Buffer.alloc(DIGEST_BYTES[of.digest]).toString(encoding === 'hex' ? 'hex' : 'base64').length
  if (text.length !== length) return undefined
  return { method: 'digest', program: { kind: 'plain', rounds: 1, ...of }, text, encoding }
}

const LDAP = /^\{(MD5|SMD5|SHA|SSHA|SHA256|SSHA256|SHA384|SSHA384|SHA512|SSHA512)\}([A-Za-z0-9+/]{22,256}={0,2})$/
const SALT_BYTES = { least: 4, most: 64 }

/** RFC 2307, and its successors; without a salt also in hexadecimal, as passlib and Dovecot read them. */
export const ldapDigest: Format = {
  name: 'LDAP digest',
  makers: 'OpenLDAP, 389 Directory Server, Dovecot, passlib',
  isWeak: true,
  read(text) {
    const [, scheme = '', encoded = ''] = LDAP.exec(text) ?? []
    const isSalted = scheme.startsWith('S') && !/^SHA/.test(scheme)
    const name = (isSalted ? scheme.slice(1) : scheme).toLowerCase()
    const digest = plainDigests.find((known) => known === (name === 'sha' ? 'sha1' : name))
    if (digest === undefined) return undefined
    const isHex = !isSalted && /^[0-9a-f]+$/.test(encoded) && encoded.length === 2 * DIGEST_BYTES[digest]
    const bytes = isHex ? hexBytes(encoded) : paddedBase64(encoded)
    if (bytes === undefined) return undefined
    const salt = bytes.subarray(DIGEST_BYTES[digest])
    if (isSalted ? salt.length < SALT_BYTES.least || salt.length > SALT_BYTES.most : salt.length > 0) return undefined
    const text64 = bytes.subarray(0, DIGEST_BYTES[digest]).toString('base64')
    return plainReading({ digest, salt, place: 'after' }, text64, 'base64')
  },
}

const NAMED = /^(md5|sha1|sha256|sha512)\$([^$]{0,128})\$([0-9a-f]+)$/

/** The same texts of two functions: Django puts the salt before the password, Werkzeug has it as the key of an HMAC. */
export const namedDigest: Format = {
  name: 'digest with its name and salt',
  makers: 'Django, Werkzeug before 2.3, passlib',
  isWeak: true,
  read(text) {
    const [, name, salt = '', hex = ''] = NAMED.exec(text) ?? []
    const digest = plainDigests.find((known) => known === name)
    if (digest === undefined) return undefined
    const before = plainRecipe({ digest, salt: Buffer.from(salt), place: 'before' }, hex, 'hex')
    const key = plainRecipe({ digest, salt: Buffer.from(salt), place: 'key' }, hex, 'hex')
    return before && key && { recipes: [before, key] }
  },
}

const SHIRO = /^\$shiro1\$(SHA-256|SHA-512|SHA-1|MD5)\$(\d{1,9})\$([A-Za-z0-9+/]*={0,2})\$([A-Za-z0-9+/]+={0,2})$/

export const shiro: Format = {
  name: 'Apache Shiro 1',
  makers: 'Sonatype Nexus 3, Apache Shiro',
  read(text) {
    const [, name = '', rounds, salt = '', encoded = ''] = SHIRO.exec(text) ?? []
    const digest = plainDigests.find((known) => known === name.toLowerCase().replace('-', ''))
    const saltBytes = paddedBase64(salt)
    if (digest === undefined || saltBytes === undefined || Number(rounds) < 1) return undefined
    return plainReading({ digest, salt: saltBytes, place: 'before', rounds: Number(rounds) }, encoded, 'base64')
  },
}
