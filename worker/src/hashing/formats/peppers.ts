/** Secrets that old systems hashed together with passwords, as a setting. Loads no hashing code. */
import { choice, text } from '../../process/settings.js'

export interface Pepper {
  name: string
  secret: Buffer
}

const ENTRY = '[\\w-]{1,32}:[A-Za-z0-9+/]+={0,2}'

/** The settings of what accounts of other systems need, as a part of the configuration's JSON Schema. */
export const oldSystemSettings = {
  PASSWORD_PEPPERS: text(
    '',
    'Secrets that old systems hashed with passwords, `name:base64`, comma-separated: those that imports with `--made-of` name',
    { pattern: `^(${ENTRY}(,${ENTRY})*)?$` },
  ),
  BCRYPT_LONG_PASSWORDS: choice(
    'cut',
    ['cut', 'refuse'],
    'How stored bcrypt hashes are verified for passwords beyond 72 bytes: `cut` as nearly all makers do, `refuse` as those that refused them',
  ),
} as const

/** The peppers of a setting that its schema accepts. */
export function peppersOf(list: string): Pepper[] {
  return list
    .split(',')
    .filter(Boolean)
    .map((entry) => {
      const [name = '', secret = ''] = entry.split(':')
      return { name, secret: Buffer.from(secret, 'base64') }
    })
}
