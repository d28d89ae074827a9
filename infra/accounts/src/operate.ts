// Commands on one account or network: a client of the API for operators, on a gateway's ops port.
import { UserError } from '@spillway/infra/processes/command-line'

/** Commands on an account. The call has the same name, but for `export-person`. */
const onAccount = [
  ...['forget-failures', 'end-sessions', 'end-session', 'disable', 'enable', 'send-reset', 'send-confirmation'],
  ...['change-email', 'export-person', 'delete'],
]
/** What follows the account. */
const furtherFields: Record<string, 'sessionId' | 'email'> = { 'end-session': 'sessionId', 'change-email': 'email' }
const others = ['show', 'blocks', 'block', 'unblock']

export interface OperatorCommand {
  name: string
  /** An account by its address or id, or a network; none for `blocks`. */
  subject: string
  more: string | undefined
  reason: string | undefined
  until: string | undefined
  confirmed: boolean
}

export interface OpsPort {
  url: string
  user: string
  password: string
}

/** Undefined for another command. Throws a UserError for what a command lacks. */
export function operatorCommand(
  [name = '', subject = '', more, ...rest]: readonly string[],
  given: { reason?: string | undefined; until?: string | undefined; confirmed?: boolean | undefined },
): OperatorCommand | undefined {
  const { reason, until, confirmed = false } = given
  if (!onAccount.includes(name) && !others.includes(name)) return undefined
  const isWhole =
    (subject === '') === (name === 'blocks') && (more !== undefined) === Object.hasOwn(furtherFields, name)
  if (!isWhole || rest.length > 0) throw new UserError(`See "pnpm accounts --help" for what follows ${name}.`)
  if (name === 'block' && until === undefined) throw new UserError(UNTIL)
  if (name !== 'show' && name !== 'blocks' && !reason) throw new UserError('--reason says why, for the audit.')
  return { name, subject, more, reason, until, confirmed }
}

/** Says what came of it. Throws a UserError with what the gateway refuses. */
export async function operate(command: OperatorCommand, ops: OpsPort): Promise<string> {
  const { name, subject, more, reason, until = '', confirmed } = command
  const call = (path: string, body?: object) => ask(ops, path, body)
  if (name === 'blocks') return shown(await call('/v1/blocks'))
  if (name === 'block') return shown(await call('/v1/blocks', { network: subject, until: timeOf(until), reason }))
  if (name === 'unblock') return shown(await call('/v1/blocks/lift', { network: subject, reason }))
  const account = await call('/v1/accounts/find', { account: subject })
  if (name === 'show') return shown(account)
  const field = furtherFields[name]
  const path = name === 'export-person' ? 'export' : name
  const further = { ...(field && { [field]: more }), ...(field === 'email' && confirmed && { confirmed }) }
  return shown(await call(`/v1/accounts/${Object(account).id}/${path}`, { reason, ...further }))
}

async function ask({ url, user, password }: OpsPort, path: string, body: object | undefined): Promise<unknown> {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const sent = body && { method: 'POST', body: JSON.stringify(body) }
  const headers = { authorization, ...(body && { 'content-type': 'application/json' }) }
  const response = await fetch(url + path, { ...sent, headers }).catch((cause) => {
    throw new UserError(`Nothing answers at ${url}: OPS_URL is the ops port of a gateway.`, { cause })
  })
  const answer = Object(await response.json().catch(() => ({ isCut: true })))
  if (response.ok && answer.isCut) throw new UserError('The answer of the gateway is not complete: try again.')
  if (response.ok) return answer
  const errors: { field: string; message: string }[] = answer.errors ?? []
  const fields = errors.map(({ field, message }) => `${field} ${message}`).join(', ')
  throw new UserError(`${answer.detail ?? `The gateway answered ${response.status}`}${fields && `: ${fields}`}.`)
}

const UNTIL = '--until takes a time from now, such as 90m, 24h or 7d, or a date such as 2026-01-31 or 2026-01-31T18:00.'

/** A time from now on, or a date, in UTC without a zone. Throws a UserError for another text. */
function timeOf(text: string): string {
  const [, count = '', unit = ''] = /^(\d+)([mhd])$/.exec(text) ?? []
  const ms = { m: 60_000, h: 3_600_000, d: 86_400_000 }[unit]
  const date = ms === undefined ? new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text) : Date.now() + Number(count) * ms
  const epochMs = Number(date)
  if (!/^\d/.test(text) || Number.isNaN(epochMs)) throw new UserError(UNTIL)
  return new Date(epochMs).toISOString()
}

/** The fields of an answer in lines; what a field holds is JSON. */
function shown(answer: unknown): string {
  const lines = Object.entries(Object(answer)).map(
    ([name, value]) => `${name.padEnd(12)} ${typeof value === 'string' ? value : JSON.stringify(value, null, 1)}`,
  )
  return lines.join('\n')
}
