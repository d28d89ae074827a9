// Where the fields of an account are in a record.
import { UserError } from '@spillway/local/processes/user-error'
import { isRecord } from './records.ts'

export const fieldNames = ['email', 'passwordHash', 'id', 'createdAt', 'emailConfirmedAt', 'salt'] as const
export type FieldName = (typeof fieldNames)[number]

/** A path through nested objects for each field, such as `fields.email`. */
export type Fields = Record<FieldName, string>

/** Those of Spillway's own exports. */
export const own: Fields = {
  email: 'email',
  passwordHash: 'passwordHash',
  id: 'id',
  createdAt: 'createdAt',
  emailConfirmedAt: 'emailConfirmedAt',
  salt: 'salt',
}

/** Fields changed by `email=mail,passwordHash=pw`. Throws a UserError for a name that is none. */
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

/** The text at a path, or that of a number or a truth value. Undefined where there is nothing, or anything else. */
export function textAt(record: Record<string, unknown>, path: string): string | undefined {
  let value: unknown = path === '' ? undefined : record
  for (const name of path.split('.')) value = isRecord(value) ? value[name] : undefined
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}
