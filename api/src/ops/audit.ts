/** GET /audit on the ops port: the audit events, from the latest to the earliest, in pages. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Database } from '@spillway/prisma'
import { auditEventNames } from '../audit/events.js'
import { readEvents } from '../audit/store.js'

const UUID = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'

/** Query parameters are texts. */
const Page = {
  type: 'object',
  properties: {
    user: { type: 'string', pattern: UUID },
    event: { type: 'string', enum: auditEventNames },
    before: { type: 'string', pattern: UUID },
    limit: { type: 'integer', minimum: 1, maximum: 500, default: 100 },
  },
  additionalProperties: false,
} as const

export const auditPlugin: FastifyPluginAsyncJsonSchemaToTs<{ Options: { database: Database } }> = async (
  app,
  { database },
) => {
  app.get('/audit', { schema: { querystring: Page } }, async ({ query }, reply) => {
    const { user: userId, event, before, limit } = query
    const filter = {
      ...(userId === undefined ? {} : { userId }),
      ...(event === undefined ? {} : { event }),
      ...(before === undefined ? {} : { before }),
    }
    const events = await readEvents(database, { ...filter, limit })
    const next = events.length < limit ? null : (events.at(-1)?.id ?? null)
    return reply.header('cache-control', 'no-store').send({ events, next })
  })
}
