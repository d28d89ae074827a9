/** The audit on the ops port, for its page and as an export in NDJSON. Both take the same filters. */
import { Readable } from 'node:stream'
import type { Database } from '@spillway/prisma'
import { REQUEST_ID } from '@spillway/queue/wire/job'
import type { FromSchema } from 'json-schema-to-ts'
import { auditEventNames, auditOutcomes, type EventFilter, readEvents, type StoredEvent } from '../audit/store.js'
import { invalid, problems, type RefusalReason } from '../http/problems.js'
import { storedNetworkOf } from '../http/requests.js'
import { isAddressRange, parseEmailAddress } from '../schemas/credentials.js'
import { UUID } from '../sessions/access-tokens.js'
import { type OperatorDeps, type OperatorRoutes, recordChange } from './change.js'

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
    limit: { type: 'string', pattern: '^([1-9]\\d?|[1-4]\\d\\d|500)$', default: '100' },
  },
  additionalProperties: false,
} as const
type Query = FromSchema<typeof Query>

export const auditPlugin: OperatorRoutes = async (app, deps) => {
  const { config, database, passwords, reads, audit } = deps
  const schema = { querystring: Query }
  app.addHook('onRequest', async (_request, reply) => void reply.header('cache-control', 'no-store'))

  const told = (event: StoredEvent) => ({ ...event, sentence: describeEvent(event, config) })
  app.get('/audit.json', { schema }, async (request) => {
    const { before } = request.query
    const limit = Number(request.query.limit)
    const events = await reads.next(request, async () => {
      const filter = await filterOf(request.query, database)
      reads.record(request, { event: 'search_audit', reason: describeFilter(filter) })
      return filter === undefined ? [] : await readEvents(database, { ...filter, before, limit })
    })
    const next = events.length < limit ? null : (events.at(-1)?.id ?? null)
    return { now: describeQueue(passwords), events: events.map(told), next }
  })

  app.get('/audit.ndjson', { schema }, async (request, reply) => {
    const filter = await reads.next(request, () => filterOf(request.query, database))
    recordChange(audit, request, { event: 'export_audit', reason: describeFilter(filter) })
    async function* lines() {
      if (filter === undefined) return
      const pages = reads.pages((page) => readEvents(database, { ...filter, ...page }))
      for await (const events of pages) yield events.map((event) => `${JSON.stringify(told(event))}\n`).join('')
    }
    return reply.type('application/x-ndjson').send(Readable.from(lines(), { highWaterMark: 1 }))
  })
}

/** Undefined if no account has the address. Throws `invalid_request` for text that cannot match. */
async function filterOf({ q = '', event, outcome, operator, from, until }: Query, database: Database) {
  const filter: EventFilter = { event, outcome, operator, from: timeOf('from', from), until: timeOf('until', until) }
  const text = q.trim()
  if (text === '') return filter
  if (text.includes('@')) {
    const email = parseEmailAddress(text)
    const user = email === undefined ? null : await database.user.findUnique({ where: { email }, select: { id: true } })
    return user === null ? undefined : { ...filter, userId: user.id }
  }
  if (isAddressRange(text)) return { ...filter, address: storedNetworkOf(text) }
  if (UUID.test(text)) {
    // Either id has an index. With both in one condition, each page would sort the whole trail.
    const isAccount = (await readEvents(database, { userId: text, limit: 1 })).length > 0
    return { ...filter, ...(isAccount ? { userId: text } : { requestId: text }) }
  }
  if (isRequestId.test(text)) return { ...filter, requestId: text }
  throw invalid('q', 'must be an e-mail address, an account id, a network address or a support code')
}

function timeOf(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  // A time without a zone is in UTC, like all times here.
  const date = new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text)
  if (!TIME.test(text) || Number.isNaN(date.getTime()))
    throw invalid(field, 'must be a time, such as 2026-01-31T18:00Z')
  return date.toISOString()
}

/** What is searched for, by ids: the audit has no e-mail addresses. */
function describeFilter(filter: EventFilter | undefined): string {
  if (filter === undefined) return 'an address without an account'
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  const parts = given.map(([name, value]) => `${name}=${value}`)
  return parts.length === 0 ? 'all events' : parts.join(' ')
}

/** What affects everybody now and is in no event yet; null if nothing does. */
function describeQueue(passwords: OperatorDeps['passwords']): string | null {
  const { known, paused, workers } = passwords.estimates.load()
  if (!known) return 'Redis does not answer: nobody gets in.'
  if (paused) return 'The queue is paused: everybody waits with a ticket, and nobody gets in.'
  if (workers === 0) return 'No worker is alive: everybody waits with a ticket, and nobody gets in.'
  return null
}

// Describes events in sentences.

const reasons: Record<RefusalReason, string> = {
  predicted_wait: 'refused: the line is longer than a ticket lives',
  too_many_waiting: 'refused: too many wait',
  gateway_overloaded: 'refused: the gateway was overloaded',
  address_limit: 'refused: too many failures from this network within a minute',
  account_limit: 'refused: too many requests for this account within a minute',
  guesses_delayed: 'refused for a while: too many wrong passwords for this account',
  session_limit: 'refused: this session refreshes too often',
  service_limit: 'refused: the application asks too often',
  mail_limit: 'refused: too many mails',
  redis: 'Redis did not answer',
  database: 'the database did not answer',
  wrong_password: 'wrong password',
  unknown_account: 'no account has this address',
  account_disabled: 'the account is disabled',
  address_unconfirmed: 'the address of the account is not confirmed',
  no_password: 'the account was imported without a password: a reset mail sets one',
  network_blocked: 'refused: operators have blocked this network',
  unsupported_hash: 'no worker verifies the stored hash of this account',
  password_changed: 'the password was changed meanwhile',
  sessions_ended: 'all sessions were ended meanwhile',
  refresh_token_reused: 'a used refresh token came again: the session was ended',
}

/** `Login: wrong password, from a known device, 2 of 10 before it counts as unknown`. */
export function describeEvent(event: StoredEvent, limits: GuessLimits): string {
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
  if (outcome === 'ok')
    return event === 'login' ? 'let in' : event.startsWith('request_') ? 'a mail was queued' : 'done'
  if (outcome === 'unchanged') return 'all was so already'
  if (outcome in reasons) return Object.entries(reasons).find(([reason]) => reason === outcome)?.[1] ?? outcome
  const { detail } = Object.entries(problems).find(([code]) => code === outcome)?.[1] ?? { detail: outcome }
  return `${detail.charAt(0).toLowerCase()}${detail.slice(1)}`
}

/** The settings that decide what failures mean. */
interface GuessLimits {
  guessesPerAccount: number
  guessesPerDevice: number
}

/** What consecutive failures mean for the next attempt, by the current settings. */
function standingOf(failures: number, isKnownDevice: boolean, limits: GuessLimits): string {
  const { guessesPerAccount: delayed, guessesPerDevice: forgotten } = limits
  if (delayed === 0) return `${failures} in a row`
  if (isKnownDevice) return `${failures} of ${forgotten} before it counts as unknown`
  return failures < delayed
    ? `${failures} of ${delayed} before a pause`
    : `${failures} in a row, with a pause after each`
}
