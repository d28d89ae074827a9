/** Settings for stored hashes of other systems. Loads no hashing code. */

import { choice, secret, text } from '@spillway/common/settings'
import { ACCOUNTS, ownerOfService } from '@spillway/queue/wire/job'

export interface Pepper {
  name: string
  secret: Buffer
}

const ENTRY = '[\\w-]{1,32}:[A-Za-z0-9+/]+={0,2}'

/** The name in KEYED_HASHES_FOR for applications that add jobs to the queue themselves. */
const APPLICATIONS = '@spillway/client'

/** Peppers and bcrypt's long passwords, as a part of the configuration's JSON Schema. */
export const oldSystemSettings = {
  PASSWORD_PEPPERS: secret(
    text(
      '',
      'Secrets that old systems hashed together with passwords: `name:base64`, comma-separated; imports name them with `--made-of`',
      { pattern: `^(${ENTRY}(,${ENTRY})*)?$` },
    ),
  ),
  KEYED_HASHES_FOR: text(
    '',
    "Owners whose stored hashes are verified with PASSWORD_PEPPERS and FIREBASE_SIGNER_KEY, in addition to Spillway's own accounts: names from SERVICE_KEYS, comma-separated, and `@spillway/client` for applications on the queue; each owner can find out these secrets",
    { pattern: '^((@spillway/client|[\\w-]{1,32})(,(@spillway/client|[\\w-]{1,32}))*)?$' },
  ),
  BCRYPT_LONG_PASSWORDS: choice(
    'cut',
    ['cut', 'refuse'],
    'How stored bcrypt hashes are verified with passwords longer than 72 bytes: `cut` reads 72 bytes, as nearly all implementations do; `refuse` never matches',
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

/** Owners of stored hashes that are verified with these secrets; undefined for an application. */
export function keyedOwners(list: string): ReadonlySet<string | undefined> {
  const named = list.split(',').filter(Boolean)
  return new Set([ACCOUNTS, ...named.map((name) => (name === APPLICATIONS ? undefined : ownerOfService(name)))])
}

/** A project's hash parameters, as Firebase's console shows them. The signer key is a secret. */
export interface FirebaseProject {
  signerKey: Buffer
  saltSeparator: Buffer
}

/** The settings of a project, as a part of the configuration's JSON Schema. */
export const firebaseSettings = {
  FIREBASE_SIGNER_KEY: secret(
    text(
      '',
      '`base64_signer_key` of the Firebase project whose accounts were imported; without it their hashes are not supported',
      { pattern: '^([A-Za-z0-9+/]{43,}={0,2})?$' },
    ),
  ),
  FIREBASE_SALT_SEPARATOR: text('Bw==', '`base64_salt_separator` of that project', {
    pattern: '^[A-Za-z0-9+/]*={0,2}$',
  }),
} as const

/** The project of these settings; undefined without a signer key. */
export function firebaseProject(settings: {
  firebaseSignerKey: string
  firebaseSaltSeparator: string
}): FirebaseProject | undefined {
  const signerKey = Buffer.from(settings.firebaseSignerKey, 'base64')
  if (signerKey.length === 0) return undefined
  return { signerKey, saltSeparator: Buffer.from(settings.firebaseSaltSeparator, 'base64') }
}
