/** The state of an account, as operators see it. */
import { type Database, Prisma, rawQuery, type User } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { describeHash } from '@spillway/queue/wire/stored-hash'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../http/problems.js'
import type { Post } from '../mail/post.js'
import { parseEmailAddress } from '../schemas/credentials.js'
import { AccountSessionBody, anyProblem, bodyProblems, problemResponse } from '../schemas/responses.js'
import { UUID } from '../sessions/access-tokens.js'
import { LISTED_MAX } from '../sessions/sessions.js'
import type { OperatorDeps, OperatorRoutes } from './change.js'

export const accountId = { type: 'string', pattern: UUID.source } as const
export const accountParams = objectOf({ id: accountId })
export const text = { type: 'string' } as const
export const time = { type: 'string', format: 'date-time' } as const
const timeOrNull = { type: ['string', 'null'], format: 'date-time' } as const

const Failures = objectOf({
  failures: { type: 'integer', description: 'Failures of all unknown devices since the last correct password' },
  waitUntil: { ...timeOrNull, description: 'When the next login of an unknown device is allowed' },
  failedDevices: { type: 'integer', description: 'Known devices that have failed since their last correct password' },
})
const UnsentMail = objectOf({
  kind: text,
  at: { ...time, description: 'When it was queued' },
  state: { type: 'string', enum: ['waiting', 'not_sent'], description: '`not_sent`: it is not tried again' },
  reason: { type: ['string', 'null'], description: 'Why the last attempt to send it failed' },
})
export const AccountBody = {
  title: 'Account',
  ...objectOf({
    id: accountId,
    email: text,
    createdAt: time,
    confirmedAt: { ...timeOrNull, description: 'When the owner last confirmed the address by mail' },
    disabledAt: timeOrNull,
    lastLoginAt: { ...timeOrNull, description: 'The last login that is still in the sessions or the audit' },
    hash: { ...text, description: 'The algorithm and cost of the stored hash' },
    failures: {
      description: 'What delays its logins; null while Redis is unavailable',
      anyOf: [{ type: 'null' }, Failures],
    },
    sessions: { type: 'array', items: AccountSessionBody },
    unsentMails: {
      description:
        'Mails that the mail server has not taken; it has taken all other mails. Mails that are not tried again are kept for at most a ' +
        'week. Null while Redis is unavailable, and if the service sends no mail',
      anyOf: [{ type: 'null' }, { type: 'array', items: { title: 'UnsentMail', ...UnsentMail } }],
    },
  }),
} as const

export const accountStateRoutes: OperatorRoutes = async (app, deps) => {
  const { database, reads } = deps
  const tags = ['Accounts']
  const shown = (request: FastifyRequest, user: User) => {
    reads.record(request, { event: 'read_account', userId: user.id })
    return stateOf(deps, user)
  }

  app.get(
    '/v1/accounts/:id',
    {
      schema: {
        ...{ operationId: 'getAccount', tags, summary: 'Get the state of an account', params: accountParams },
        response: { 200: AccountBody, 404: problemResponse, 422: problemResponse, ...anyProblem },
      },
    },
    async (request) => reads.next(request, async () => shown(request, await accountById(database, request.params.id))),
  )

  // POST, because proxies log URLs.
  app.post(
    '/v1/accounts/find',
    {
      config: { role: 'viewer' },
      schema: {
        ...{ operationId: 'findAccount', tags, summary: 'Find the state of an account by its address or id' },
        body: { title: 'AccountToFind', ...objectOf({ account: { type: 'string', maxLength: 320 } }) },
        response: { 200: AccountBody, 404: problemResponse, ...bodyProblems },
      },
    },
    async (request) => {
      const { account } = request.body
      const email = parseEmailAddress(account)
      return reads.next(request, async () => {
        const found = email === undefined ? null : await database.user.findUnique({ where: { email } })
        return shown(request, found ?? (await accountById(database, account)))
      })
    },
  )
}

/** Throws `account_not_found`, also for a text that is not an id. */
export async function accountById(database: Database, id: string): Promise<User> {
  const user = UUID.test(id) ? await database.user.findUnique({ where: { id } }) : null
  if (user === null) throw new ApiError('account_not_found')
  return user
}

type UnsentMails = Awaited<ReturnType<Post['about']>>

/** @param mails the unsent mails of the account, if they are read anyway; undefined if no mail is sent */
export async function stateOf(
  { database, sessions, guessing, post }: OperatorDeps,
  user: User,
  mails: Promise<UnsentMails | null> | undefined = post?.about(user).catch(() => null),
) {
  const { id, email, createdAt, emailConfirmedAt, disabledAt, passwordHash } = user
  // By ids, which have an index. A ticket may open a session later than its id says.
  const sql = Prisma.sql`
    WITH latest AS (SELECT created_at FROM sessions WHERE user_id = ${id}::uuid ORDER BY id DESC LIMIT ${LISTED_MAX})
    SELECT greatest(
      (SELECT max(created_at) FROM latest),
      (SELECT at FROM audit_events WHERE user_id = ${id}::uuid AND event = 'login' AND outcome = 'ok' ORDER BY id DESC LIMIT 1)
    ) AS at`
  const [live, failed, unsent, logins] = await Promise.all([
    sessions.list(id),
    guessing.failuresOf(email).catch(() => null),
    mails,
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
    unsentMails:
      unsent?.map(({ job, request }) => ({
        kind: 'kind' in request ? String(request.kind) : '',
        at: new Date(job.timestamp).toISOString(),
        state: job.finishedOn === undefined ? ('waiting' as const) : ('not_sent' as const),
        reason: job.failedReason ?? null,
      })) ?? null,
  }
}
