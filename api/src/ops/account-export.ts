/** Exports all that is stored about a person, as a stream: a trail may have a million events. */
import { Readable } from 'node:stream'
import type { User } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyInstance } from 'fastify'
import { readEvents } from '../audit/store.js'
import { bodyProblems, problemResponse } from '../schemas/responses.js'
import { AccountBody, accountById, accountParams, stateOf } from './account-state.js'
import { type OperatorDeps, Reason, recordChange } from './change.js'
import type { Page } from './reads.js'

const anything = { type: 'array', items: { type: 'object', additionalProperties: true } } as const
const ExportBody = {
  title: 'AccountExport',
  description:
    'All data about a person, except the hashes of the password and of tokens. `mails` are unsent mails and failed ones; `audit` may lack ' +
    'the last seconds',
  ...objectOf({ account: AccountBody, sessions: anything, links: anything, mails: anything, audit: anything }),
} as const

export async function accountExportRoutes(app: FastifyInstance, deps: OperatorDeps): Promise<void> {
  const { database, audit } = deps

  app.post<{ Params: { id: string }; Body: { reason: string } }>(
    '/v1/accounts/:id/export',
    {
      config: { role: 'support', event: 'export_account' },
      schema: {
        operationId: 'exportAccount',
        tags: ['Accounts'],
        summary: 'Export all data about a person',
        params: accountParams,
        body: { title: 'ReasonOfExport', ...objectOf({ reason: Reason }) },
        response: { 200: ExportBody, 404: problemResponse, ...bodyProblems },
      },
    },
    async (request, reply) => {
      const user = await accountById(database, request.params.id)
      recordChange(audit, request, { event: 'export_account', userId: user.id, reason: request.body.reason })
      const parts = Readable.from(exportOf(deps, user), { highWaterMark: 1 })
      return reply.type('application/json; charset=utf-8').send(parts)
    },
  )
}

/** The text of an {@link ExportBody}. */
async function* exportOf(deps: OperatorDeps, user: User): AsyncGenerator<string> {
  const { database, post, reads } = deps
  const userId = user.id
  const times = { createdAt: true, expiresAt: true } as const
  const unsentMails = post?.about(user)
  const [account, unsent = []] = await Promise.all([stateOf(deps, user, unsentMails), unsentMails])
  const mails = unsent.map(({ job, request }) => ({ ...request, token: undefined, at: new Date(job.timestamp) }))
  const ofPage = ({ before, limit: take }: Page) =>
    ({ where: { userId, ...(before !== undefined && { id: { lt: before } }) }, take, orderBy: { id: 'desc' } }) as const
  const ofLink = { id: true, purpose: true, email: true, ...times, usedAt: true } as const
  const place = { id: true, device: true, address: true, replacedFrom: true } as const
  const ofSession = { ...place, ...times, replacedAt: true, revokedAt: true } as const
  yield `{"account":${JSON.stringify(account)},"mails":${JSON.stringify(mails)},"links":`
  yield* arrayOf(reads.pages((page) => database.mailToken.findMany({ ...ofPage(page), select: ofLink })))
  yield ',"sessions":'
  yield* arrayOf(reads.pages((page) => database.session.findMany({ ...ofPage(page), select: ofSession })))
  yield ',"audit":'
  yield* arrayOf(reads.pages((page) => readEvents(database, { userId, ...page })))
  yield '}'
}

async function* arrayOf(pages: AsyncIterable<object[]>): AsyncGenerator<string> {
  yield '['
  let separator = ''
  for await (const rows of pages) {
    if (rows.length === 0) break
    yield separator + rows.map((row) => JSON.stringify(row)).join(',')
    separator = ','
  }
  yield ']'
}
