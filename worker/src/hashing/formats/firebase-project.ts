/** The project whose accounts were imported from Firebase, as settings. Loads no hashing code. */

/** The hash parameters of a project, as Firebase's console shows them. The signer key is a secret. */
export interface FirebaseProject {
  signerKey: Buffer
  saltSeparator: Buffer
}

/** The settings of a project, as a part of the configuration's JSON Schema. */
export const firebaseSettings = {
  /** base64_signer_key; empty for no project, whose hashes are then not supported. */
  FIREBASE_SIGNER_KEY: { type: 'string', default: '', pattern: '^([A-Za-z0-9+/]{43,}={0,2})?$' },
  /** base64_salt_separator. */
  FIREBASE_SALT_SEPARATOR: { type: 'string', default: 'Bw==', pattern: '^[A-Za-z0-9+/]*={0,2}$' },
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
