/**
 * The table of formats, the only one: worker, import, applications and their drop-ins read stored hashes by it. To add a format, write it in
 * a file of its own and name it here. Formats of other systems are verified and never made: an account gets a hash of the policy at its
 * next login.
 */
import { argon2 } from './argon2.js'
import { aspNet } from './aspnet.js'
import { bcrypt } from './bcrypt.js'
import { djangoBcrypt, passlibBcrypt, wordpressBcrypt } from './bcrypt-of-digest.js'
import { md5Crypt, sha1Crypt, shaCrypt, yescrypt } from './crypt.js'
import { atlassian, dovecotPbkdf2, freeIpa, ldapPbkdf2 } from './directories.js'
import { directoryPrefix, djangoPrefix, nextcloud, springPrefix, xenforo } from './envelopes.js'
import { firebase, firescrypt } from './firebase.js'
import type { Format, FormatContext, Reading } from './format.js'
import { madeOf } from './made-of.js'
import { magento, magentoDigest } from './magento.js'
import {
  djangoPbkdf2,
  grub,
  mattermost,
  mediawiki,
  p5k2,
  passlibPbkdf2,
  phcPbkdf2,
  scram,
  seafile,
  werkzeugPbkdf2,
} from './pbkdf2.js'
import { drupal6, phpass } from './phpass.js'
import { ldapDigest, namedDigest, shiro } from './plain.js'
import { lucia, saltAndKey } from './salt-and-key.js'
import { cryptScrypt, djangoScrypt, phcScrypt, werkzeugScrypt } from './scrypt.js'
import { springDigest, springPbkdf2, springScrypt, springStandard } from './spring.js'
import { symfony } from './symfony.js'
import { wrapped } from './wrapped.js'

export const formats: readonly Format[] = [
  ...[argon2, bcrypt, djangoBcrypt, passlibBcrypt, wordpressBcrypt],
  ...[phcPbkdf2, djangoPbkdf2, werkzeugPbkdf2, passlibPbkdf2, aspNet, springPbkdf2],
  ...[ldapPbkdf2, freeIpa, dovecotPbkdf2, atlassian, mattermost, mediawiki, seafile, p5k2, scram, grub],
  ...[phcScrypt, djangoScrypt, werkzeugScrypt, cryptScrypt, springScrypt, saltAndKey, lucia, firebase, firescrypt],
  ...[shaCrypt, yescrypt, sha1Crypt, md5Crypt, phpass, drupal6, magento, magentoDigest],
  ...[shiro, symfony, springStandard, springDigest, ldapDigest, namedDigest],
  ...[djangoPrefix, springPrefix, directoryPrefix, nextcloud, xenforo, madeOf, wrapped],
]

/** A stored hash once it is read. */
export type StoredReading = Reading & { format: Format }

/** How many envelopes may be inside each other. */
const DEPTH_MAX = 3
/** Longer texts are not stored hashes. */
const TEXT_MAX_LENGTH = 2_048

/** A job asks several times what its stored hash is. So many readings are kept as jobs may be in hand. */
const RECENT_MAX = 64

/** Returns the parser of stored hashes. Undefined for a text of no format. */
export function createReader(context: Omit<FormatContext, 'read'>): (text: string) => StoredReading | undefined {
  const readAt =
    (depth: number) =>
    (text: string): StoredReading | undefined => {
      if (depth > DEPTH_MAX || text.length > TEXT_MAX_LENGTH) return undefined
      const inner = { ...context, read: readAt(depth + 1) }
      for (const format of formats) {
        const reading = format.read(text, inner)
        if (reading !== undefined) return { ...reading, format }
      }
      return undefined
    }
  const read = readAt(0)
  const recent = new Map<string, StoredReading | undefined>()
  return (text) => {
    if (recent.has(text)) return recent.get(text)
    const reading = read(text)
    recent.set(text, reading)
    const [oldest] = recent.keys()
    if (recent.size > RECENT_MAX && oldest !== undefined) recent.delete(oldest)
    return reading
  }
}
