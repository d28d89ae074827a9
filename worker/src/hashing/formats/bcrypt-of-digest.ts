/** bcrypt of a digest of the password, so that passwords longer than 72 bytes count whole. */
import { createHash, createHmac } from 'node:crypto'
import type { Password } from '../methods/recipe.js'
import { bcryptRecipe } from './bcrypt.js'
import type { Format, Reading } from './format.js'
import { slashed, trimmed } from './made-of.js'

function ofDigest(storedHash: string | undefined, textsOf: NonNullable<Reading['textsOf']>): Reading | undefined {
  const recipe = storedHash === undefined ? undefined : bcryptRecipe(storedHash)
  return recipe && { recipes: [recipe], textsOf }
}

const DJANGO = /^bcrypt_sha256\$(\$2.*)$/

export const djangoBcrypt: Format = {
  name: 'Django bcrypt_sha256',
  makers: 'Django',
  read: (text) => ofDigest(DJANGO.exec(text)?.[1], (password) => [sha256(password).toString('hex')]),
}

const PASSLIB_V1 = /^\$bcrypt-sha256\$(2[aby]),(\d{1,2})\$([./A-Za-z0-9]{22})\$([./A-Za-z0-9]{31})$/
const PASSLIB_V2 = /^\$bcrypt-sha256\$v=2,t=(2[aby]),r=(\d{1,2})\$([./A-Za-z0-9]{22})\$([./A-Za-z0-9]{31})$/

export const passlibBcrypt: Format = {
  name: 'passlib bcrypt_sha256',
  makers: 'passlib',
  read(text) {
    const v1 = PASSLIB_V1.exec(text)
    if (v1 !== null) return ofDigest(joined(v1), (password) => [sha256(password).toString('base64')])
    const v2 = PASSLIB_V2.exec(text)
    const [, , , salt = ''] = v2 ?? []
    return ofDigest(joined(v2), (password) => [hmac('sha256', salt, password)])
  },
}

/** bcrypt's usual text of passlib's parts. */
function joined(match: RegExpExecArray | null): string | undefined {
  const [, version, cost, salt, digest] = match ?? []
  return cost === undefined ? undefined : `$${version}$${cost.padStart(2, '0')}$${salt}${digest}`
}

const WORDPRESS = /^\$wp(\$2y.*)$/

/** WordPress trims the password when it makes the hash and when it verifies it, and has slashes before quotes where it came from a form. */
export const wordpressBcrypt: Format = {
  name: 'WordPress bcrypt',
  makers: 'WordPress 6.8 and later',
  read(text) {
    const reading = ofDigest(WORDPRESS.exec(text)?.[1], (password) =>
      [trimmed(slashed(password)), trimmed(password)].map((read) => hmac('sha384', 'wp-sha384', read)),
    )
    return reading && { ...reading, isAmbiguous: (password) => trimmed(password) !== password }
  },
}

function sha256(password: Password): Buffer {
  return createHash('sha256').update(password).digest()
}

function hmac(digest: string, key: string, password: Password): string {
  return createHmac(digest, key).update(password).digest('base64')
}
