/** argon2 and bcrypt, and bcrypt of a digest, which reads all of a password beyond 72 bytes. */
import { createHash, createHmac } from 'node:crypto'
import { decodeBcrypt, encodeBcrypt } from '@spillway/queue/wire/setting'
import { parseArgon2, parseBcrypt } from '@spillway/queue/wire/stored-hash'
import type { BcryptRecipe, Password } from '../methods/recipe.js'
import { slashed, trimmed } from './envelopes.js'
import { type Format, formatOf, type Reading } from './format.js'

const COST_MIN = 4
const COST_MAX = 31

export const argon2AndBcrypt: readonly Format[] = [
  {
    name: 'argon2',
    makers: 'Spillway, PHP, argon2 of npm, argon2-cffi, passlib, Spring Security',
    read: argon2Reading,
  },
  {
    name: 'bcrypt',
    makers: 'PHP, bcrypt of npm, Spring Security, Devise, Laravel, Supabase, Auth0, crypt(3)',
    read(text) {
      const recipe = bcryptRecipe(text)
      return recipe && { recipes: [recipe] }
    },
  },
  formatOf('Django bcrypt_sha256', 'Django', /^bcrypt_sha256\$(\$2.*)$/, ([inner]) =>
    ofDigest(inner, (password) => [sha256(password).toString('hex')]),
  ),
  // Version 1 digests the password, version 2 makes an HMAC of it under the salt.
  formatOf(
    'passlib bcrypt_sha256',
    'passlib',
    /^\$bcrypt-sha256\$(?:(v=2),t=)?(2[aby]),(?:r=)?(\d{1,2})\$([./A-Za-z0-9]{22})\$([./A-Za-z0-9]{31})$/,
    ([second, version, cost, salt, digest], _, text) => {
      // Version 2 names its cost, version 1 does not.
      if (text.includes(',r=') !== (second !== '')) return undefined
      return ofDigest(`$${version}$${cost.padStart(2, '0')}$${salt}${digest}`, (password) => [
        second === '' ? sha256(password).toString('base64') : hmac('sha256', salt, password),
      ])
    },
  ),
  // WordPress trims the password. A password from a form has slashes before quotes.
  formatOf('WordPress bcrypt', 'WordPress 6.8 and later', /^\$wp(\$2y.*)$/, ([inner]) => {
    const reading = ofDigest(inner, (password) =>
      [trimmed(slashed(password)), trimmed(password)].map((read) => hmac('sha384', 'wp-sha384', read)),
    )
    return reading && { ...reading, isAmbiguous: (password) => trimmed(password) !== password }
  }),
]

/** RFC 9106, 3.1: eight blocks for each lane. */
export function argon2Reading(text: string): Reading | undefined {
  const stored = parseArgon2(text)
  if (stored === undefined || stored.memoryKib < 8 * stored.parallelism) return undefined
  return { recipes: [{ method: 'argon2', stored }] }
}

function bcryptRecipe(text: string): BcryptRecipe | undefined {
  const { version, cost = 0, salt = '', digest = '' } = parseBcrypt(text) ?? {}
  if (version === undefined || digest === '' || cost < COST_MIN || cost > COST_MAX) return undefined
  if (encodeBcrypt(decodeBcrypt(digest)) !== digest) return undefined
  const variant = version === '2' || version === '2x' ? version : '2b'
  // Old versions of passlib set spare bits of the salt's last character.
  return { method: 'bcrypt', variant, cost, salt: encodeBcrypt(decodeBcrypt(salt)), digest }
}

function ofDigest(storedHash: string, textsOf: NonNullable<Reading['textsOf']>): Reading | undefined {
  const recipe = bcryptRecipe(storedHash)
  return recipe && { recipes: [recipe], textsOf }
}

function sha256(password: Password): Buffer {
  return createHash('sha256').update(password).digest()
}

function hmac(digest: string, key: string, password: Password): string {
  return createHmac(digest, key).update(password).digest('base64')
}
