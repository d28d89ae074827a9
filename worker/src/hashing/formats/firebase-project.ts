/** The project whose accounts were imported from Firebase, as settings. Loads no hashing code. */
import { text } from '../../process/settings.js'

/** The hash parameters of a project, as Firebase's console shows them. The signer key is a secret. */
export interface FirebaseProject {
  signerKey: Buffer
  saltSeparator: Buffer
}

/** The settings of a project, as a part of the configuration's JSON Schema. */
export const firebaseSettings = {
  FIREBASE_SIGNER_KEY: text(
    '',
    '`base64_signer_key` of the Firebase project whose accounts were imported, a secret; without it their hashes are not supported',
    { pattern: '^([A-Za-z0-9+/]{43,}={0,2})?$' },
  ),
  FIREBASE_SALT_SEPARATOR: text('Bw==', '`base64_salt_separator` of that project', {
    pattern: '^[A-Za-z0-9+/]*={0,2}$',
  }),
} as const

/** The project of these settings; undefined without a signer key. */
export function firebaseProject(settings: {
  FIREBASE_SIGNER_KEY: string
  FIREBASE_SALT_SEPARATOR: string
}): FirebaseProject | undefined {
  const signerKey = Buffer.from(settings.FIREBASE_SIGNER_KEY, 'base64')
  if (signerKey.length === 0) return undefined
  return { signerKey, saltSeparator: Buffer.from(settings.FIREBASE_SALT_SEPARATOR, 'base64') }
}
