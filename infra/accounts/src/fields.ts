// Where the fields of an account are in a record, and the forms in which exports write values.
import { UserError } from '@spillway/infra/processes/command-line'
import { isRecord } from './records.ts'

const fieldNames = ['email', 'passwordHash', 'id', 'createdAt', 'emailConfirmedAt', 'disabledAt', 'salt'] as const
type FieldName = (typeof fieldNames)[number]

/** A path through nested objects for each field, such as `fields.email`. */
export type Fields = Record<FieldName, string>

/** The fields of Spillway's own exports, except `disabledAt`: disabled accounts of other systems are not imported. */
export const own: Fields = {
  email: 'email',
  passwordHash: 'passwordHash',
  id: 'id',
  createdAt: 'createdAt',
  emailConfirmedAt: 'emailConfirmedAt',
  disabledAt: '',
  salt: 'salt',
}

/** Fields changed by `email=mail,passwordHash=pw`. */
export function mapped(base: Fields, map: string | undefined): Fields {
  const fields = { ...base }
  for (const pair of (map ?? '').split(',').filter(Boolean)) {
    const [name, path] = pair.split('=')
    const field = fieldNames.find((known) => known === name)
    if (field === undefined || !path)
      throw new UserError(`--map takes pairs such as email=mail; the fields are ${fieldNames.join(', ')}.`)
    fields[field] = path
  }
  return fields
}

type Record_ = Record<string, unknown>

/** The value at a path: a key with dots, or nested keys, in any case; the exact name first. */
export function valueAt(record: Record_, path: string): unknown {
  if (path === '') return undefined
  const whole = ofName(record, path)
  if (whole !== undefined || !path.includes('.')) return whole
  const [first = '', ...rest] = path.split('.')
  const inner = ofName(record, first)
  return isRecord(inner) ? valueAt(inner, rest.join('.')) : undefined
}

function ofName(record: Record_, name: string): unknown {
  if (Object.hasOwn(record, name)) return record[name]
  const lower = name.toLowerCase()
  // Names of CSV are in lower case already.
  if (Object.hasOwn(record, lower)) return record[lower]
  const key = Object.keys(record).find((other) => other.toLowerCase() === lower)
  return key === undefined ? undefined : record[key]
}

/** What databases write for nothing: PostgreSQL's COPY, MySQL's and others. */
const NOTHING = ['', '\\N', 'NULL', 'null', '<null>']

/** Numbers and truth values become text. Undefined for anything else. */
export function textAt(record: Record_, path: string): string | undefined {
  return textOf(valueAt(record, path))
}

/** Also of MongoDB's extended JSON. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (isRecord(value)) {
    for (const name of ['$oid', '$date', '$numberLong', '$numberInt']) if (name in value) return textOf(value[name])
    return undefined
  }
  return typeof value === 'string' && !NOTHING.includes(value) ? value : undefined
}

/** A truth value as exports write it: true, t, 1, yes and their opposites; else undefined. */
export function truthOf(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined
  if (/^(true|t|1|yes|y)$/i.test(text)) return true
  return /^(false|f|0|no|n)$/i.test(text) ? false : undefined
}

/** Zero in the databases that have such a date, and in Go. */
const ZERO = /^(0000|0001)-/

/**
 * A date: ISO 8601 and what databases write like it, without a zone in UTC; seconds or milliseconds
 * since 1970. Null for an empty date, undefined for any other text.
 */
export function dateOf(text: string | undefined): Date | null | undefined {
  if (text === undefined || ZERO.test(text)) return null
  const number = Number(text)
  if (Number.isFinite(number)) return number === 0 ? null : valid(new Date(number * (number < 1e11 ? 1_000 : 1)))
  const [, day, time, zone = ''] = DATE.exec(text.trim()) ?? []
  if (day === undefined) return valid(new Date(text))
  const offset = /^[+-]\d{2}$/.test(zone) ? `${zone}:00` : zone.replace(/^UTC$|^GMT$|^$/, 'Z')
  return valid(new Date(`${day}T${time ?? '00:00:00'}${offset}`))
}

const DATE = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?))? ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?$/

function valid(date: Date): Date | undefined {
  return Number.isNaN(date.getTime()) ? undefined : date
}
