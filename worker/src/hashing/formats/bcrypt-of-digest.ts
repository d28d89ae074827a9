/** bcrypt of a digest of the password, so that passwords longer than 72 bytes count whole. */
import { createHash, createHmac } from 'node:crypto'
import type { Password } from '../methods/recipe.js'
import { bcryptRecipe } from './bcrypt.js'
import { formatOf, type Reading } from './format.js'
import { slashed, trimmed } from './made-of.js'

function ofDigest(storedHash: string, textsOf: NonNullable<Reading['textsOf']>): Reading | undefined {
  const recipe = bcryptRecipe(storedHash)
  return recipe && { recipes: [recipe], textsOf }
}

export const djangoBcrypt = formatOf('Django bcrypt_sha256', 'Django', /^bcrypt_sha256\$(\$2.*)$/, ([inner]) =>
  ofDigest(inner, (password) => [sha256(password).toString('hex')]),
)

/** Version 1 digests the password, version 2 makes an HMAC of it under the salt. */
export const passlibBcrypt = formatOf(
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
)

/**
 * WordPress trims the password when it makes the hash and when it verifies it. A password from a form
 * has slashes before quotes.
 */
export const wordpressBcrypt = formatOf('WordPress bcrypt', 'WordPress 6.8 and later', /^\$wp(\$2y.*)$/, ([inner]) => {
  const reading = ofDigest(inner, (password) =>
    [trimmed(slashed(password)), trimmed(password)].map((read) => hmac('sha384', 'wp-sha384', read)),
  )
  return reading && { ...reading, isAmbiguous: (password) => trimmed(password) !== password }
})

function sha256(password: Password): Buffer {
  return createHash('sha256').update(password).digest()
}

function hmac(digest: string, key: string, password: Password): string {
  return createHmac(digest, key).update(password).digest('base64')
}
