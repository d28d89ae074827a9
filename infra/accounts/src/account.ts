// Checks a record, and makes an account of it.
import { parseEmailAddress } from '@spillway/api/credentials'
import type { Passwords } from '@spillway/client'
import { newId } from '@spillway/queue/wire/id'
import { describeHash, NO_PASSWORD } from '@spillway/queue/wire/stored-hash'
import type { Wrapping } from '@spillway/worker/hashing/formats/wrapped'
import type { Hasher } from '@spillway/worker/hashing/index'
import { dateOf, type Fields, textAt, truthOf, valueAt } from './fields.ts'
import type { ImportCommand } from './options.ts'
import type { HashSettings } from './presets.ts'
import { isRecord } from './records.ts'
import { examineHash } from './stored-hash.ts'
import { saltBytes, wrappingOfBare } from './weak.ts'

/** An account whose hash is not made yet. */
export interface Unhashed {
  id: string
  /** Its id in the old system, where it is another. */
  oldId?: string | undefined
  /** As addresses are compared. */
  email: string
  createdAt: Date
  /** Null where it is not known that its owner reads mail to the address. */
  emailConfirmedAt: Date | null
  /** Null for an account that allows logins. */
  disabledAt: Date | null
}

export interface Account extends Unhashed {
  passwordHash: string
}

export interface WeakAccount {
  account: Unhashed
  wrapping: Wrapping
}

export async function wrapped(passwords: Passwords, { account, wrapping }: WeakAccount): Promise<Account> {
  return { ...account, passwordHash: wrapping.store(await passwords.hash(wrapping.text)) }
}

export type Checked =
  | { kind: 'account'; account: Account; format: string }
  | ({ kind: 'weak'; format: string } & WeakAccount)
  | { kind: 'rejected'; reason: string }

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const EARLIEST = Date.UTC(1970, 0, 2)
const DAY_MS = 86_400_000

interface CheckOptions extends ImportCommand {
  settings: HashSettings
  hasher: Hasher
}

/** Returns the check. Reasons hold nothing of a record but names of fields and formats. */
export function createCheck(options: CheckOptions): (record: Record<string, unknown>) => Checked {
  const { preset, fields, ids } = options
  return (record) => {
    const text = (name: keyof Fields) => textAt(record, fields[name])
    const disabled = disabledBy(record, fields.disabledAt)
    if (disabled !== undefined) return rejected(`is disabled (${disabled})`)
    const given = text('email')
    if (given === undefined) return rejected('has no e-mail address')
    const email = parseEmailAddress(given)
    if (email === undefined) return rejected('has an e-mail address that is not valid')
    const oldId = text('id')
    if (ids === 'keep' && oldId !== undefined && !UUID.test(oldId))
      return rejected('has an id that is not a UUID: --id new gives it another')
    const id = ids === 'keep' && oldId !== undefined ? oldId.toLowerCase() : newId()
    const created = dateOf(text('createdAt'))
    const createdAt = created === null ? new Date() : past(created)
    if (createdAt === undefined) return rejected('has a creation date that is not valid')
    const confirmed = preset.isConfirmed === undefined ? text('emailConfirmedAt') : String(preset.isConfirmed(record))
    const emailConfirmedAt = confirmationOf(confirmed, createdAt)
    if (emailConfirmedAt === undefined) return rejected('has a confirmation date that is not valid')
    const disabledSince = dateOf(text('disabledAt'))
    const disabledAt = disabledSince === null ? null : past(disabledSince)
    if (disabledAt === undefined) return rejected('has a disabling date that is not valid')
    const account = { id, oldId: ids === 'new' ? oldId : undefined, email, createdAt, emailConfirmedAt, disabledAt }
    return withHash(record, account, options)
  }
}

function withHash(record: Record<string, unknown>, account: Unhashed, options: CheckOptions): Checked {
  const { preset, fields, settings, hasher, bare, compose, saltEncoding, madeOf } = options
  const salt = textAt(record, fields.salt) ?? ''
  const given = textAt(record, fields.passwordHash)
  const stored = preset.hashOf === undefined ? given : preset.hashOf(record, { passwordHash: given, salt }, settings)
  if (stored === undefined && options.withoutHash === 'reject') return rejected('has no password hash')
  // Spillway's own exports have accounts without a password, too.
  if (stored === undefined || stored === NO_PASSWORD)
    return { kind: 'account', account: { ...account, passwordHash: NO_PASSWORD }, format: describeHash(NO_PASSWORD) }
  const saltRead = saltBytes(salt, saltEncoding)
  if (saltRead === undefined) return rejected(`has a salt that is not ${saltEncoding}`)
  const wrapping = bare && wrappingOfBare(bare, stored.trim(), saltRead)
  if (wrapping === 'too-long') return rejected('has a salt that is too long')
  if (wrapping !== undefined) return { kind: 'weak', account, wrapping, format: bare?.digest ?? '' }
  const composed = compose === undefined ? stored.trim() : compose(stored.trim(), saltRead)
  const examined = examineHash(madeOf === undefined ? composed : `$of$${madeOf}$${composed}`, hasher)
  if (examined.kind === 'rejected') return examined
  if (examined.kind === 'weak') return { ...examined, account }
  return { kind: 'account', account: { ...account, passwordHash: examined.storedHash }, format: examined.format }
}

function rejected(reason: string): Checked {
  return { kind: 'rejected', reason }
}

/** A date, or a plain yes, which counts as of the account's creation. */
function confirmationOf(text: string | undefined, createdAt: Date): Date | null | undefined {
  const isConfirmed = /^(true|false|[tf01])$/i.test(text ?? '') ? truthOf(text) : undefined
  if (isConfirmed !== undefined) return isConfirmed ? createdAt : null
  const date = dateOf(text)
  return date === null ? null : past(date)
}

/** A day ahead at the most: clocks differ. */
function past(date: Date | undefined): Date | undefined {
  return date !== undefined && date.getTime() >= EARLIEST && date.getTime() <= Date.now() + DAY_MS ? date : undefined
}

// Accounts that could not log in at the old system stay out, by these fields: names without case,
// underscores, hyphens and a leading "is".
const OUT_IF_TRUE = [
  ...['disabled', 'blocked', 'banned', 'locked', 'accountlocked', 'suspended', 'deleted', 'deactivated', 'archived'],
  'anonymous',
]
const OUT_IF_FALSE = ['enabled', 'active', 'accountenabled']
/** With a date that is to come. */
const OUT_UNTIL = ['banneduntil', 'lockeduntil', 'lockoutend', 'lockoutenddateutc', 'blockeduntil', 'banexpires']
/** With any date. */
const OUT_SINCE = ['deletedat', 'disabledat', 'blockedat', 'bannedat', 'suspendedat', 'deactivatedat', 'archivedat']

/**
 * Reads the record, and its `fields`, where Django writes them.
 *
 * @param known the field that imports an account as disabled
 */
function disabledBy(record: Record<string, unknown>, known: string, now = Date.now()): string | undefined {
  const fields = valueAt(record, 'fields')
  for (const [name, value] of Object.entries(isRecord(fields) ? { ...record, ...fields } : record)) {
    const text = textAt({ value }, 'value')
    if (name !== known && text !== undefined && saysOut(name.toLowerCase().replace(/^is|[_\- ]/g, ''), text, now))
      return name
  }
  return undefined
}

function saysOut(name: string, text: string, now: number): boolean {
  if (OUT_IF_TRUE.includes(name)) return truthOf(text) ?? false
  if (OUT_IF_FALSE.includes(name)) return truthOf(text) === false
  const date = OUT_UNTIL.includes(name) || OUT_SINCE.includes(name) ? dateOf(text) : null
  if (date === null) return false
  // What is no date is no reason to let anyone in.
  return date === undefined || OUT_SINCE.includes(name) || date.getTime() > now
}
