/**
 * The audit on the ops port: a page with a search field, the same as JSON, and exports as NDJSON
 * and CSV. All take the same filters.
 */
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Database } from '@spillway/prisma'
import type { PasswordClient } from '@spillway/queue/queue-client'
import { REQUEST_ID } from '@spillway/queue/wire/job'
import type { FromSchema } from 'json-schema-to-ts'
import { auditEventNames, type EventFilter, everyEvent, readEvents, type StoredEvent } from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import { storedNetworkOf } from '../plugins/client-network.js'
import { ApiError } from '../plugins/errors.js'
import { parseEmailAddress } from '../schemas/email-address.js'
import { UUID } from '../sessions/access-token.js'
import { describeEvent } from './audit-words.js'

const isRequestId = new RegExp(REQUEST_ID)
const time = {
  type: 'string',
  pattern: '^\\d{4}-\\d\\d-\\d\\d(T\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d)?)?$',
} as const

/** Query parameters are texts. */
const Query = {
  type: 'object',
  properties: {
    q: { type: 'string', maxLength: 320 },
    event: { type: 'string', enum: auditEventNames },
    outcome: { type: 'string', maxLength: 64 },
    operator: { type: 'string', maxLength: 200 },
    from: time,
    until: time,
    before: { type: 'string', pattern: UUID.source },
    limit: { type: 'integer', minimum: 1, maximum: 500, default: 100 },
  },
  additionalProperties: false,
} as const
type Query = FromSchema<typeof Query>

const files = [
  { path: '/audit', file: 'audit.html', type: 'text/html; charset=utf-8' },
  { path: '/audit.js', file: 'audit.js', type: 'text/javascript; charset=utf-8' },
]

interface AuditOptions {
  config: GatewayConfig
  database: Database
  passwords: Pick<PasswordClient, 'load'>
}

export const auditPlugin: FastifyPluginAsyncJsonSchemaToTs<{ Options: AuditOptions }> = async (app, options) => {
  const { config, database, passwords } = options
  const schema = { querystring: Query }
  for (const { path, file, type } of files) {
    const content = (await readFile(new URL(`page/${file}`, import.meta.url), 'utf8'))
      .replaceAll('{{basePath}}', config.OPS_BASE_PATH)
      .replace('{{events}}', auditEventNames.map((name) => `<option>${name}</option>`).join(''))
    app.get(path, async (_request, reply) => reply.type(type).send(content))
  }
  app.addHook('onRequest', async (_request, reply) => void reply.header('cache-control', 'no-store'))

  const told = (event: StoredEvent) => ({ ...event, sentence: describeEvent(event, config) })
  app.get('/audit.json', { schema }, async ({ query }) => {
    const { limit = 100, before } = query
    const filter = await filterOf(query, database)
    const events = filter === undefined ? [] : await readEvents(database, { ...filter, before, limit })
    const next = events.length < limit ? null : (events.at(-1)?.id ?? null)
    return { now: describeQueue(passwords), events: events.map(told), next }
  })

  async function* exported(query: Query, line: (event: ReturnType<typeof told>) => string) {
    const filter = await filterOf(query, database)
    if (filter !== undefined) for await (const event of everyEvent(database, filter)) yield line(told(event))
  }
  app.get('/audit.ndjson', { schema }, async ({ query }, reply) =>
    reply.type('application/x-ndjson').send(Readable.from(exported(query, (event) => `${JSON.stringify(event)}\n`))),
  )
  app.get('/audit.csv', { schema }, async ({ query }, reply) => {
    async function* lines() {
      yield `${columns.join(',')}\r\n`
      yield* exported(query, (event) => `${columns.map((column) => cell(event[column])).join(',')}\r\n`)
    }
    const named = reply.header('content-disposition', 'attachment; filename="audit.csv"')
    return named.type('text/csv; charset=utf-8').send(Readable.from(lines()))
  })
}

/** Undefined where nothing can match: no account has the address. Throws for an impossible time. */
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
  return isRequestId.test(text) ? { ...filter, requestId: text } : undefined
}

function dateOf(field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  // A time without a zone is in UTC, as all times here.
  const date = new Date(/T[\d:.]+$/.test(text) ? `${text}Z` : text)
  if (Number.isNaN(date.getTime()))
    throw new ApiError('invalid_request', { fields: [{ field, message: 'is no time' }] })
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
