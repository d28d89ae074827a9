/** The audit on the ops port, for its page and as exports in NDJSON and CSV. All take the same filters. */
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Database } from '@spillway/prisma'
import type { PasswordClient } from '@spillway/queue/queue-client'
import { REQUEST_ID } from '@spillway/queue/wire/job'
import type { FromSchema } from 'json-schema-to-ts'
import {
  auditEventNames,
  auditOutcomes,
  type EventFilter,
  everyEvent,
  readEvents,
  type StoredEvent,
} from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import { storedNetworkOf } from '../plugins/client-network.js'
import { ApiError, type RefusalReason } from '../plugins/errors.js'
import { UNDELAYED_SHARE } from '../plugins/guessing/attempts.js'
import { parseEmailAddress } from '../schemas/email-address.js'
import { problems } from '../schemas/problem-codes.js'
import { UUID } from '../sessions/access-token.js'

const isRequestId = new RegExp(REQUEST_ID)
const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/
const time = { type: 'string', maxLength: 40 } as const

const Query = {
  type: 'object',
  properties: {
    q: { type: 'string', maxLength: 320 },
    event: { type: 'string', enum: auditEventNames },
    outcome: { type: 'string', enum: auditOutcomes },
    operator: { type: 'string', maxLength: 200 },
    from: time,
    until: time,
    before: { type: 'string', pattern: UUID.source },
    limit: { type: 'integer', minimum: 1, maximum: 500, default: 100 },
  },
  additionalProperties: false,
} as const
type Query = FromSchema<typeof Query>

interface AuditOptions {
  config: GatewayConfig
  database: Database
  passwords: Pick<PasswordClient, 'load'>
}

export const auditPlugin: FastifyPluginAsyncJsonSchemaToTs<{ Options: AuditOptions }> = async (app, options) => {
  const { config, database, passwords } = options
  const schema = { querystring: Query }
  app.addHook('onRequest', async (_request, reply) => void reply.header('cache-control', 'no-store'))

  const told = (event: StoredEvent) => ({ ...event, sentence: describeEvent(event, config) })
  app.get('/audit.json', { schema }, async ({ query }) => {
    const { limit = 100, before } = query
    const filter = await filterOf(query, database)
    const events = filter === undefined ? [] : await readEvents(database, { ...filter, before, limit })
    const next = events.length < limit ? null : (events.at(-1)?.id ?? null)
    return { now: describeQueue(passwords), events: events.map(told), next }
  })

  async function* exported(filter: EventFilter | undefined, line: (event: ReturnType<typeof told>) => string) {
    if (filter !== undefined) for await (const event of everyEvent(database, filter)) yield line(told(event))
  }
  app.get('/audit.ndjson', { schema }, async ({ query }, reply) => {
    const lines = exported(await filterOf(query, database), (event) => `${JSON.stringify(event)}\n`)
    return reply.type('application/x-ndjson').send(Readable.from(lines))
  })
  app.get('/audit.csv', { schema }, async ({ query }, reply) => {
    const filter = await filterOf(query, database)
    async function* lines() {
      yield `${columns.join(',')}\r\n`
      yield* exported(filter, (event) => `${columns.map((column) => cell(event[column])).join(',')}\r\n`)
    }
    const named = reply.header('content-disposition', 'attachment; filename="audit.csv"')
    return named.type('text/csv; charset=utf-8').send(Readable.from(lines()))
  })
}

/** Undefined where no account has the address. Throws `invalid_request` for what nothing can be. */
async function filterOf({ q = '', event, outcome, operator, from, until }: Query, database: Database) {
  const filter: EventFilter = { event, outcome, operator, from: dateOf('from', from), until: dateOf('until', until) }
  const text = q.trim()
  if (text === '') return filter
  if (text.includes('@')) {
    const email = parseEmailAddress(text)
    const user = email === undefined ? null : await database.user.findUnique({ where: { email }, select: { id: true } })
    return user === null ? undefined : { ...filter, userId: user.id }
  }
  if (isIP(text.replace(/\/64$/, '')) !== 0) return { ...filter, address: storedNetworkOf(text.replace(/\/64$/, '')) }
  if (UUID.test(text)) return { ...filter, id: text }
  if (isRequestId.test(text)) return { ...filter, requestId: text }
  throw invalid('q', 'must be an e-mail address, an account id, a network address or a support code')
}

const invalid = (field: string, message: string) => new ApiError('invalid_request', { fields: [{ field, message }] })

function dateOf(field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  // A time without a zone is in UTC, as all times here.
  const date = new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text)
  if (!TIME.test(text) || Number.isNaN(date.getTime()))
    throw invalid(field, 'must be a time, such as 2026-01-31T18:00Z')
  return date
}

/** What holds for everybody just now, of whom the audit knows nothing yet; null where nothing does. */
function describeQueue(passwords: AuditOptions['passwords']): string | null {
  const { known, paused, workers } = passwords.load()
  if (!known) return 'Redis does not answer: nobody gets in.'
  if (paused) return 'The queue is paused: everybody waits with a ticket, and nobody gets in.'
  if (workers === 0) return 'No worker is alive: everybody waits with a ticket, and nobody gets in.'
  return null
}

const columns = [
  ...(['at', 'sentence', 'event', 'outcome', 'count', 'userId', 'sessionId', 'address'] as const),
  ...(['isKnownDevice', 'failures', 'operator', 'reason', 'requestId', 'id'] as const),
]

/** A cell of RFC 4180. Spreadsheets would run a text that begins like a formula. */
function cell(value: Date | string | number | boolean | null): string {
  const text = value instanceof Date ? value.toISOString() : String(value ?? '')
  return `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`
}

// Events as sentences that a person can read.

const reasons: Record<RefusalReason, string> = {
  predicted_wait: 'refused: the line is longer than a ticket lives',
  too_many_waiting: 'refused: too many wait',
  gateway_overloaded: 'refused: the gateway was overloaded',
  address_limit: 'refused: too many failures from this network within a minute',
  account_limit: 'refused: too many requests for this account within a minute',
  guesses_delayed: 'refused for a while: too many wrong passwords for this account',
  guesses_challenged: 'refused: a challenge must be solved, after too many wrong passwords for this account',
  session_limit: 'refused: this session refreshes too often',
  service_limit: 'refused: the application asks too often',
  mail_limit: 'refused: too many mails',
  ticket_held: 'refused: too many requests wait with this ticket',
  old_system: 'the old system did not answer',
  redis: 'Redis did not answer',
  database: 'the database did not answer',
  wrong_password: 'wrong password',
  unknown_account: 'no account has this address',
  account_disabled: 'the account is disabled',
  address_unconfirmed: 'the address of the account is not confirmed',
  network_blocked: 'refused: operators have blocked this network',
  unsupported_hash: 'no worker verifies the stored hash of this account',
  password_changed: 'the password was changed meanwhile',
  refresh_token_reused: 'a used refresh token came again: the session was ended',
}

type Limits = Pick<GatewayConfig, 'GUESSES_PER_ACCOUNT' | 'GUESSES_PER_DEVICE'>

/** `Login: wrong password, from a known device, 2 of 10 before it counts as unknown`. */
export function describeEvent(event: StoredEvent, limits: Limits): string {
  const name = event.outcome === 'network_blocked' ? 'request' : event.event.replaceAll('_', ' ')
  const parts = [
    outcomeOf(event),
    ...(event.isKnownDevice === null ? [] : [event.isKnownDevice ? 'from a known device' : 'from an unknown device']),
    ...(event.failures ? [standingOf(event.failures, event.isKnownDevice === true, limits)] : []),
    ...(event.operator === null ? [] : [`by the operator ${event.operator}`]),
    ...(event.reason === null ? [] : [`“${event.reason}”`]),
    ...(event.count === 1 ? [] : [`${event.count} times, added up`]),
  ]
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}: ${parts.join(', ')}`
}

function outcomeOf({ event, outcome }: StoredEvent): string {
  if (outcome === 'ok') return event === 'login' ? 'let in' : 'done'
  if (outcome === 'unchanged') return event.startsWith('request_') ? 'no mail was queued' : 'all was so already'
  if (outcome in reasons) return Object.entries(reasons).find(([reason]) => reason === outcome)?.[1] ?? outcome
  const { detail } = Object.entries(problems).find(([code]) => code === outcome)?.[1] ?? { detail: outcome }
  return `${detail.charAt(0).toLowerCase()}${detail.slice(1)}`
}

/** What so many failures in a row mean for the next attempt, by today's settings. */
function standingOf(failures: number, isKnownDevice: boolean, limits: Limits): string {
  const { GUESSES_PER_ACCOUNT: challenged, GUESSES_PER_DEVICE: forgotten } = limits
  if (challenged === 0) return `${failures} in a row`
  if (isKnownDevice) return `${failures} of ${forgotten} before it counts as unknown`
  const delayed = Math.ceil(challenged * UNDELAYED_SHARE)
  if (failures < delayed) return `${failures} of ${delayed} before a pause`
  return failures < challenged ? `${failures} of ${challenged} before a challenge` : 'a challenge comes next'
}
