/** Exports all that is stored about a person, as a stream: a trail may have a million events. */
import { Readable } from 'node:stream'
import type { User } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyInstance } from 'fastify'
import { readEvents } from '../audit/store.js'
import { bodyProblems, problemResponse } from '../schemas/responses.js'
import { AccountBody, accountById, accountParams, stateOf } from './account-state.js'
import { type OperatorDeps, Reason, recordChange } from './change.js'

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
  const ofLink = { purpose: true, email: true, ...times, usedAt: true } as const
  const unsentMails = post?.about(user)
  const [account, links, unsent = []] = await Promise.all([
    stateOf(deps, user, unsentMails),
    database.mailToken.findMany({ where: { userId }, select: ofLink }),
    unsentMails,
  ])
  const mails = unsent.map(({ job, request }) => ({ ...request, token: undefined, at: new Date(job.timestamp) }))
  const place = { id: true, device: true, address: true, replacedFrom: true } as const
  const select = { ...place, ...times, replacedAt: true, revokedAt: true } as const
  const sessions = reads.pages(({ before, limit: take }) => {
    const where = { userId, ...(before !== undefined && { id: { lt: before } }) }
    return database.session.findMany({ where, select, take, orderBy: { id: 'desc' } })
  })
  yield `{"account":${JSON.stringify(account)},"links":${JSON.stringify(links)},"mails":${JSON.stringify(mails)},"sessions":`
  yield* arrayOf(sessions)
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
