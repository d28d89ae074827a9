// Where the fields of an account are in a record: by their own names, by those of an export that is known, or as it is told.
import { UserError } from '@spillway/local/processes/user-error'
import { isRecord } from './records.ts'

export const fieldNames = ['email', 'passwordHash', 'id', 'createdAt', 'salt'] as const
export type FieldName = (typeof fieldNames)[number]

/** A path through nested objects for each field, such as `fields.email`. */
export type Fields = Record<FieldName, string>

const own: Fields = { email: 'email', passwordHash: 'passwordHash', id: 'id', createdAt: 'createdAt', salt: 'salt' }

/** Exports as other systems write them. Ids that are no UUID cannot be kept, and are not named here. */
export const presets: Record<string, Fields> = {
  /** A bulk export of users with their hashes, NDJSON. */
  auth0: { ...own, createdAt: 'created_at', id: '' },
  /** `manage.py dumpdata auth.user --format jsonl`. */
  django: { ...own, email: 'fields.email', passwordHash: 'fields.password', createdAt: 'fields.date_joined', id: '' },
}

/** The fields of a preset, changed by `email=mail,passwordHash=pw`. Throws a UserError for a name that is none. */
export function fieldsOf({ preset, map }: { preset?: string | undefined; map?: string | undefined }): Fields {
  const base = preset === undefined ? own : presets[preset]
  if (base === undefined)
    throw new UserError(`--preset takes one of ${Object.keys(presets).join(', ')}, not "${preset}".`)
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

/** The text at a path. Undefined where there is nothing, or something that is neither text nor a number. */
export function textAt(record: Record<string, unknown>, path: string): string | undefined {
  let value: unknown = path === '' ? undefined : record
  for (const name of path.split('.')) value = isRecord(value) ? value[name] : undefined
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}
