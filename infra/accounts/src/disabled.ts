// Which rows stay out: accounts that could not log in at the old system, by the fields in which exports say so.
import { dateOf, textAt, truthOf, valueAt } from './fields.ts'
import { isRecord } from './records.ts'

/** Names without case, underscores and hyphens. */
const OUT_IF_TRUE = [
  ...['disabled', 'isdisabled', 'blocked', 'isblocked', 'banned', 'isbanned', 'locked', 'islocked', 'accountlocked'],
  ...['suspended', 'issuspended', 'deleted', 'isdeleted', 'deactivated', 'isdeactivated', 'archived', 'isanonymous'],
]
const OUT_IF_FALSE = ['enabled', 'isenabled', 'active', 'isactive', 'accountenabled']
/** With a date that is to come. */
const OUT_UNTIL = ['banneduntil', 'lockeduntil', 'lockoutend', 'lockoutenddateutc', 'blockeduntil', 'banexpires']
/** With any date. */
const OUT_SINCE = ['deletedat', 'disabledat', 'blockedat', 'bannedat', 'suspendedat', 'deactivatedat', 'archivedat']

/** The field that says that the account could not log in; undefined if it could. Reads the record, and its `fields`, where Django writes them. */
export function disabledBy(record: Record<string, unknown>, now = Date.now()): string | undefined {
  const fields = valueAt(record, 'fields')
  for (const [name, value] of Object.entries(isRecord(fields) ? { ...record, ...fields } : record)) {
    const text = textAt({ value }, 'value')
    if (text !== undefined && saysOut(name.toLowerCase().replace(/[_\- ]/g, ''), text, now)) return name
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
