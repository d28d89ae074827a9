// Exports of other systems, as they write them. Ids that are no UUID cannot be kept, and are not named here.
import { firebaseHash } from '@spillway/worker/hashing/formats/firebase'
import { type Fields, own } from './fields.ts'

export interface Preset {
  fields: Fields
  /** Whether the account could not log in there: it is not to be opened here. */
  isDisabled(record: Record<string, unknown>): boolean
  /** The stored hash, where it is made of several fields [the field `passwordHash`]. */
  hashOf?(parts: { passwordHash: string; salt: string }, settings: HashSettings): string
}

/** What the hashes of an export have in common, and its records do not say. */
export interface HashSettings {
  /** Of a Firebase project: mem_cost and rounds. */
  firebase: { logCost: number; blockSize: number }
}

export const ownPreset: Preset = { fields: own, isDisabled: () => false }

export const presets: Record<string, Preset> = {
  /** A bulk export of users with their hashes, NDJSON. */
  auth0: {
    fields: { ...own, createdAt: 'created_at', emailConfirmedAt: 'email_verified', id: '' },
    isDisabled: ({ blocked }) => blocked === true,
  },
  /** `manage.py dumpdata auth.user`. */
  django: {
    fields: {
      ...own,
      ...{ email: 'fields.email', passwordHash: 'fields.password', createdAt: 'fields.date_joined' },
      ...{ emailConfirmedAt: '', id: '' },
    },
    isDisabled: ({ fields }) =>
      typeof fields === 'object' && fields !== null && Reflect.get(fields, 'is_active') === false,
  },
  /** `firebase auth:export users.json`. */
  firebase: {
    fields: { ...own, emailConfirmedAt: 'emailVerified', id: '' },
    isDisabled: ({ disabled }) => disabled === true,
    hashOf: ({ passwordHash, salt }, { firebase }) => firebaseHash(firebase, salt, passwordHash),
  },
}
