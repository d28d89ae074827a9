// Exports of other systems, as they write them.
import { unpadded } from '@spillway/queue/wire/stored-hash'
import { firebaseHash } from '@spillway/worker/hashing/formats/scrypt'
import { type Fields, own, textAt, textOf, valueAt } from './fields.ts'
import { isRecord } from './records.ts'

type Row = Record<string, unknown>

export interface Preset {
  fields: Fields
  ids: 'keep' | 'new'
  /** Of a CSV without a line of names. */
  columns?: readonly string[]
  /** The stored hash, where it is made of several fields [the field `passwordHash`]. */
  hashOf?(
    record: Row,
    parts: { passwordHash: string | undefined; salt: string },
    settings: HashSettings,
  ): string | undefined
  /** Whether the address is confirmed, where no single field says so. */
  isConfirmed?(record: Row): boolean
}

/** What the hashes of a Firebase project have in common, and its records do not say. */
export interface HashSettings {
  firebase: { logCost: number; blockSize: number }
}

export const ownPreset: Preset = { fields: { ...own, disabledAt: 'disabledAt' }, ids: 'keep' }

/** Columns of `firebase auth:export users.csv`: from the seventh on, four for each provider. */
const FIREBASE_COLUMNS = [
  ...['localid', 'email', 'emailverified', 'passwordhash', 'salt', 'displayname', 'photourl'],
  ...['google', 'facebook', 'twitter', 'github'].flatMap((name) => [1, 2, 3, 4].map((n) => `${name}${n}`)),
  ...['createdat', 'lastsignedinat', 'phonenumber', 'disabled', 'customattributes', 'providers'],
]

export const presets: Record<string, Preset> = {
  /** A bulk export of users with their hashes, NDJSON. */
  auth0: {
    fields: { ...own, createdAt: 'created_at', emailConfirmedAt: 'email_verified', id: '_id' },
    ids: 'new',
  },
  /** The tables `user` and `account` joined; `password` is of the provider `credential`. */
  'better-auth': {
    fields: { ...own, passwordHash: 'password', emailConfirmedAt: 'emailVerified' },
    ids: 'new',
  },
  /** Dashboard, Settings, User exports: CSV. */
  clerk: {
    fields: { ...own, email: 'primary_email_address', passwordHash: 'password_digest', emailConfirmedAt: '' },
    ids: 'new',
    isConfirmed: (record) =>
      (textAt(record, 'verified_email_addresses') ?? '')
        .split('|')
        .includes(textAt(record, 'primary_email_address') ?? '\n'),
  },
  /** `manage.py dumpdata auth.user`. */
  django: {
    fields: {
      ...own,
      ...{ email: 'fields.email', passwordHash: 'fields.password', createdAt: 'fields.date_joined' },
      ...{ emailConfirmedAt: '', id: 'pk' },
    },
    ids: 'new',
  },
  /** `firebase auth:export users.json`, or `users.csv`. */
  firebase: {
    fields: { ...own, emailConfirmedAt: 'emailVerified', id: 'localId' },
    ids: 'new',
    columns: FIREBASE_COLUMNS,
    hashOf: (_, { passwordHash, salt }, { firebase }) => passwordHash && firebaseHash(firebase, salt, passwordHash),
  },
  /** `kc.sh export --realm NAME`, with its users in the file. */
  keycloak: {
    fields: { ...own, createdAt: 'createdTimestamp', emailConfirmedAt: 'emailVerified' },
    ids: 'keep',
    hashOf: (record) => keycloakHash(valueAt(record, 'credentials')),
  },
  /** The table auth.users. */
  supabase: {
    fields: {
      ...own,
      ...{ passwordHash: 'encrypted_password', createdAt: 'created_at', emailConfirmedAt: 'email_confirmed_at' },
    },
    ids: 'keep',
  },
  /** The table wp_users. */
  wordpress: {
    fields: {
      ...own,
      ...{ email: 'user_email', passwordHash: 'user_pass', createdAt: 'user_registered' },
      ...{ emailConfirmedAt: '', id: 'ID' },
    },
    ids: 'new',
  },
}

/** Undefined without a password. A credential of an unknown algorithm is a text of no format. */
function keycloakHash(credentials: unknown): string | undefined {
  if (!Array.isArray(credentials)) return undefined
  const password = credentials.filter(isRecord).find(({ type }) => type === 'password')
  if (password === undefined) return undefined
  const [secret, data] = [objectOf(password.secretData), objectOf(password.credentialData)]
  const [value = '', saltText = ''] = [textAt(secret, 'value'), textAt(secret, 'salt')]
  const [salt, key] = [Buffer.from(saltText, 'base64'), Buffer.from(value, 'base64')]
  const algorithm = textAt(data, 'algorithm') ?? ''
  const rounds = textAt(data, 'hashIterations') ?? ''
  if (algorithm === 'argon2') {
    // Parameters are lists of one text.
    const of = (name: string) =>
      textOf([data.additionalParameters].filter(isRecord).flatMap((all) => all[name])[0]) ?? ''
    const version = of('version') === '1.0' ? 16 : 19
    const cost = `m=${of('memory')},t=${rounds},p=${of('parallelism')}`
    return `$argon2${of('type')}$v=${version}$${cost}$${unpadded(salt)}$${unpadded(key)}`
  }
  const digest = algorithm === 'pbkdf2' ? 'sha1' : algorithm.replace(/^pbkdf2-/, '')
  return `$pbkdf2-${digest}$i=${rounds},l=${key.length}$${unpadded(salt)}$${unpadded(key)}`
}

/** Text that is JSON, or what it holds already. */
function objectOf(value: unknown): Record<string, unknown> {
  if (isRecord(value)) return value
  try {
    const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : undefined
    return isRecord(parsed) ? parsed : {}
  } catch {
    return {}
  }
}
