// Checks a record, and makes an account of it.
import { randomUUID } from 'node:crypto'
import { parseEmailAddress } from '@spillway/api/email-address'
import type { Hasher } from '@spillway/worker/hashing/index'
import { type Fields, textAt } from './fields.ts'
import type { HashSettings, Preset } from './presets.ts'
import { examineHash } from './stored-hash.ts'
import { type BareDigest, type WeakAccount, wrappingOfBare } from './weak.ts'

export interface Account {
  id: string
  /** As addresses are compared. */
  email: string
  passwordHash: string
  createdAt: Date
  /** Null where it is not known that its owner reads mail to the address. */
  emailConfirmedAt: Date | null
}

/** What a record holds: an account whose hash can be verified, one whose weak digest is to be wrapped first, or why neither. */
export type Checked =
  | { kind: 'account'; account: Account; format: string }
  | ({ kind: 'weak'; format: string } & WeakAccount)
  | { kind: 'rejected'; reason: string }

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const EARLIEST = Date.UTC(1970, 0, 2)

export interface CheckOptions {
  preset: Preset
  /** In place of those of the preset, where they are told. */
  fields: Fields
  settings: HashSettings
  hasher: Pick<Hasher, 'examine'>
  /** What digests are that do not say it. */
  bare: BareDigest | undefined
}

/** Returns the check. No reason holds a part of the record. */
export function createCheck(options: CheckOptions): (record: Record<string, unknown>) => Checked {
  const { preset, fields, settings, hasher, bare } = options
  return (record) => {
    const text = (name: keyof Fields) => textAt(record, fields[name])
    if (preset.isDisabled(record)) return rejected('is disabled')
    const given = text('email')
    if (given === undefined) return rejected('has no e-mail address')
    const email = parseEmailAddress(given)
    if (email === undefined) return rejected('has an e-mail address that is not valid')
    const id = text('id') ?? randomUUID()
    if (!UUID.test(id)) return rejected('has an id that is no UUID')
    const createdAt = dateOf(text('createdAt'))
    if (createdAt === undefined) return rejected('has a date of creation that is none')
    const emailConfirmedAt = confirmationOf(text('emailConfirmedAt'), createdAt)
    if (emailConfirmedAt === undefined) return rejected('has a date of confirmation that is none')
    const stored = text('passwordHash')
    if (stored === undefined) return rejected('has no password hash')
    const salt = text('salt') ?? ''
    const passwordHash = preset.hashOf?.({ passwordHash: stored, salt }, settings) ?? stored

    const account = { id: id.toLowerCase(), email, createdAt, emailConfirmedAt }
    const wrapping = bare && wrappingOfBare(bare, passwordHash, Buffer.from(salt))
    if (wrapping === 'too-long') return rejected('has a salt that is too long')
    if (wrapping !== undefined) return { kind: 'weak', account, wrapping, format: bare?.digest ?? '' }
    const examined = examineHash(passwordHash, hasher)
    if (examined.kind === 'rejected') return examined
    if (examined.kind === 'weak') return { ...examined, account }
    return { kind: 'account', account: { ...account, passwordHash: examined.storedHash }, format: examined.format }
  }
}

function rejected(reason: string): Checked {
  return { kind: 'rejected', reason }
}

/** A date, or a plain yes or no: other systems do not tell when an address was confirmed, so it counts as of the account's creation. */
function confirmationOf(text: string | undefined, createdAt: Date): Date | null | undefined {
  if (text === undefined || text === 'false') return null
  return text === 'true' ? createdAt : dateOf(text)
}

/** ISO 8601, or seconds or milliseconds since 1970; now where there is none. */
function dateOf(text: string | undefined): Date | undefined {
  if (text === undefined) return new Date()
  const number = Number(text)
  const date = new Date(Number.isFinite(number) ? number * (number < 1e11 ? 1_000 : 1) : text)
  const time = date.getTime()
  return time >= EARLIEST && time <= Date.now() + 86_400_000 ? date : undefined
}
