/** An account as operators see it: its state, and all that is stored about its person. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import { type Database, Prisma, rawQuery, type User } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { describeHash } from '@spillway/queue/wire/stored-hash'
import { everyEvent } from '../audit/store.js'
import { ApiError } from '../plugins/errors.js'
import { SessionBody } from '../schemas/bodies.js'
import { parseEmailAddress } from '../schemas/email-address.js'
import { anyProblem, bodyProblems, problemResponse } from '../schemas/responses.js'
import { UUID } from '../sessions/access-token.js'
import { type OperatorDeps, Reason, recordChange } from './change.js'

export const accountId = { type: 'string', pattern: UUID.source } as const
export const accountParams = objectOf({ id: accountId })
const text = { type: 'string' } as const
const time = { type: 'string', format: 'date-time' } as const
const timeOrNull = { type: ['string', 'null'], format: 'date-time' } as const
const anything = { type: 'array', items: { type: 'object', additionalProperties: true } } as const

const { current: _, ...ofSession } = SessionBody.properties
const Failures = objectOf({
  failures: { type: 'integer', description: 'Of all unknown devices, since the last right password' },
  waitUntil: { ...timeOrNull, description: 'Until when the next login of an unknown device has to wait' },
  needsChallenge: { type: 'boolean', description: 'Whether such a login must solve a challenge' },
  failedDevices: { type: 'integer', description: 'Known devices that have failed since their last right password' },
})
const AccountBody = {
  title: 'Account',
  ...objectOf({
    id: accountId,
    email: text,
    createdAt: time,
    confirmedAt: { ...timeOrNull, description: 'When its owner was last shown to read mail to the address' },
    disabledAt: timeOrNull,
    lastLoginAt: { ...timeOrNull, description: 'As far as sessions and the audit go back' },
    hash: { ...text, description: 'Algorithm and cost of its hash' },
    failures: {
      description: 'What holds its logins back; null while no Redis server says',
      anyOf: [{ type: 'null' }, Failures],
    },
    sessions: { type: 'array', items: { title: 'AccountSession', ...objectOf(ofSession) } },
  }),
} as const

const ExportBody = {
  title: 'AccountExport',
  description:
    'All that is stored about a person, but hashes of the password and of tokens: `mails` wait to be sent, or have failed; `audit` may lack ' +
    'the last seconds',
  ...objectOf({ account: AccountBody, sessions: anything, links: anything, mails: anything, audit: anything }),
} as const

export const accountStateRoutes: FastifyPluginAsyncJsonSchemaToTs<{ Options: OperatorDeps }> = async (app, deps) => {
  const { database, audit } = deps
  const tags = ['Accounts']
  const ofAccount = { 200: AccountBody, 404: problemResponse, ...bodyProblems }

  app.get(
    '/v1/accounts/:id',
    {
      schema: {
        ...{ operationId: 'getAccount', tags, summary: 'The state of an account', params: accountParams },
        response: { 200: AccountBody, 404: problemResponse, 422: problemResponse, ...anyProblem },
      },
    },
    async ({ params }) => stateOf(deps, await accountById(database, params.id)),
  )

  // POST, because proxies log URLs.
  app.post(
    '/v1/accounts/find',
    {
      config: { role: 'viewer' },
      schema: {
        ...{ operationId: 'findAccount', tags, summary: 'The state of an account, by its address or id' },
        body: { title: 'AccountToFind', ...objectOf({ account: { type: 'string', maxLength: 320 } }) },
        response: ofAccount,
      },
    },
    async ({ body: { account } }) => {
      const email = parseEmailAddress(account)
      const found = email === undefined ? null : await database.user.findUnique({ where: { email } })
      return stateOf(deps, found ?? (await accountById(database, account)))
    },
  )

  app.post(
    '/v1/accounts/:id/export',
    {
      config: { role: 'support', event: 'export_account' },
      schema: {
        ...{ operationId: 'exportAccount', tags, summary: 'All that is stored about a person', params: accountParams },
        body: { title: 'ReasonOfExport', ...objectOf({ reason: Reason }) },
        response: { 200: ExportBody, 404: problemResponse, ...bodyProblems },
      },
    },
    async (request) => {
      const user = await accountById(database, request.params.id)
      recordChange(audit, request, { event: 'export_account', userId: user.id, reason: request.body.reason })
      return await exportOf(deps, user)
    },
  )
}

/** Throws `account_not_found`, also for a text that is no id. */
export async function accountById(database: Database, id: string): Promise<User> {
  const user = UUID.test(id) ? await database.user.findUnique({ where: { id } }) : null
  if (user === null) throw new ApiError('account_not_found')
  return user
}

async function stateOf({ database, sessions, failures }: OperatorDeps, user: User) {
  const { id, email, createdAt, emailConfirmedAt, disabledAt, passwordHash } = user
  const sql = Prisma.sql`
    SELECT greatest(
      (SELECT max(created_at) FROM sessions WHERE user_id = ${id}::uuid),
      (SELECT at FROM audit_events WHERE user_id = ${id}::uuid AND event = 'login' AND outcome = 'ok' ORDER BY id DESC LIMIT 1)
    ) AS at`
  const [live, failed, logins] = await Promise.all([
    sessions.list(id),
    failures.read(email).catch(() => null),
    rawQuery<{ at: string | null }>(database, sql),
  ])
  const lastLoginAt = logins[0]?.at ?? null
  return {
    ...{ id, email, createdAt: createdAt.toISOString() },
    confirmedAt: emailConfirmedAt?.toISOString() ?? null,
    disabledAt: disabledAt?.toISOString() ?? null,
    lastLoginAt: lastLoginAt === null ? null : new Date(lastLoginAt).toISOString(),
    hash: describeHash(passwordHash),
    failures: failed,
    sessions: live,
  }
}

async function exportOf(deps: OperatorDeps, user: User) {
  const { database } = deps
  const ofUser = { where: { userId: user.id } }
  const times = { createdAt: true, expiresAt: true } as const
  const place = { id: true, device: true, address: true, replacedFrom: true } as const
  const [account, sessions, links, audit, waiting] = await Promise.all([
    stateOf(deps, user),
    database.session.findMany({ ...ofUser, select: { ...place, ...times, replacedAt: true, revokedAt: true } }),
    database.mailToken.findMany({ ...ofUser, select: { purpose: true, email: true, ...times, usedAt: true } }),
    listOf(everyEvent(database, { userId: user.id })),
    deps.post?.about(user) ?? [],
  ])
  const mails = waiting.map(({ job, request }) => ({ ...request, token: undefined, at: new Date(job.timestamp) }))
  return { account, sessions, links, mails, audit }
}

async function listOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}
