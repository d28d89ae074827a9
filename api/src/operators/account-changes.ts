/** What operators do to one account. */
import { type Database, isTaken, Prisma, rawQuery, type User } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyInstance } from 'fastify'
import type { AuditEventName } from '../audit/store.js'
import type { Post } from '../mail/post.js'
import { newMailToken } from '../mail/tokens.js'
import { ApiError } from '../plugins/errors.js'
import { EmailField, normalizeEmail } from '../schemas/credentials.js'
import { problemResponse } from '../schemas/responses.js'
import { accountById, accountId, accountParams } from './account-state.js'
import { changeResponses, type OperatorDeps, Reason, recordChange } from './change.js'

interface Change {
  /** Behind the account's path. */
  path: string
  operationId: string
  summary: string
  description?: string
  /** [support] */
  role?: 'admin'
  event: AuditEventName
  /** Its schema [a reason alone] */
  body?: object
  /** Resolves with how many things changed. */
  change(deps: OperatorDeps, account: User, body: ChangeBody): Promise<number>
}

/** As the schema of the change has let it in. */
interface ChangeBody {
  reason: string
  sessionId: string
  email: string
  confirmed?: boolean
}

const changes: readonly Change[] = [
  {
    path: 'forget-failures',
    operationId: 'forgetFailures',
    summary: 'Forget its failed logins',
    description: 'The next login neither waits nor solves a challenge.',
    event: 'forget_failures',
    change: ({ failures }, { email }) => failures.forget(email),
  },
  {
    path: 'end-sessions',
    operationId: 'endAllSessions',
    summary: 'End all its sessions',
    description:
      'Access tokens are inactive at introspection from then on. All devices are unknown until their next login, and tickets and links that ' +
      'were given before are void.',
    event: 'end_all_sessions',
    change: ({ database, sessions }, { id }) =>
      database.$transaction(async (transaction) => {
        // First: it waits for logins that are opening sessions.
        await transaction.user.update({ where: { id }, data: { credentialVersion: { increment: 1 } } })
        return await sessions.endAll(id, transaction)
      }),
  },
  {
    path: 'end-session',
    operationId: 'endSession',
    summary: 'End one of its sessions',
    event: 'end_session',
    body: { title: 'SessionToEnd', ...objectOf({ reason: Reason, sessionId: accountId }) },
    async change({ sessions }, { id: userId }, { sessionId }) {
      if (!(await sessions.endOne({ sessionId, userId }))) throw new ApiError('session_not_found')
      return 1
    },
  },
  {
    path: 'disable',
    operationId: 'disableAccount',
    summary: 'Let nobody log in to it',
    description: 'Ends its sessions. A login gets the answer for a wrong password until the account is enabled.',
    event: 'disable_account',
    change: ({ database, sessions }, { id }) =>
      database.$transaction(async (transaction) => {
        const where = { id, disabledAt: null }
        const { count } = await transaction.user.updateMany({ where, data: { disabledAt: new Date() } })
        await sessions.endAll(id, transaction)
        return count
      }),
  },
  {
    path: 'enable',
    operationId: 'enableAccount',
    summary: 'Let its owner log in again',
    event: 'enable_account',
    async change({ database }, { id }) {
      const where = { id, disabledAt: { not: null } }
      return (await database.user.updateMany({ where, data: { disabledAt: null } })).count
    },
  },
  {
    path: 'send-reset',
    operationId: 'sendResetLink',
    summary: 'Mail a link that sets a new password',
    description: '0 where no mail was queued: the address got too many within the hour, or Redis is away.',
    event: 'request_password_reset',
    change: ({ post }, { email }) => send(post, { kind: 'reset', email, token: newMailToken() }, email),
  },
  {
    path: 'send-confirmation',
    operationId: 'sendConfirmationLink',
    summary: 'Mail a link that confirms its address',
    description: '0 where no mail was queued, as above.',
    event: 'request_email_confirmation',
    change: ({ post }, { id, email }) => send(post, { kind: 'confirm', userId: id, token: newMailToken() }, email),
  },
  {
    path: 'change-email',
    operationId: 'changeAddress',
    summary: 'Change or confirm its address',
    description:
      'At once, and links that were mailed before are void. The old address gets a notice. The new one gets a link that confirms it, ' +
      'unless the operator vouches for it.',
    event: 'change_email',
    body: {
      title: 'NewAddress',
      ...objectOf(
        { reason: Reason, email: EmailField },
        { confirmed: { type: 'boolean', description: "Whether the address is known to be the owner's [false]" } },
      ),
    },
    async change({ database, post }, user, { email: given, confirmed = false }) {
      const email = normalizeEmail(given)
      const isOther = email !== user.email
      if (!(await changeAddress(database, { userId: user.id, email, confirmed }))) throw new ApiError('email_taken')
      const before = { email: user.email, isConfirmed: user.emailConfirmedAt !== null }
      if (isOther) await post?.notify(before, 'changed')
      if (!confirmed) await post?.send({ kind: 'confirm', userId: user.id, token: newMailToken() }, email)
      return isOther || confirmed ? 1 : 0
    },
  },
  {
    path: 'delete',
    operationId: 'deleteAccount',
    summary: 'Delete a person',
    description:
      'The account, its sessions, links, counts of failures, and mails that wait. No mail is sent. What remains: audit events, by its id and ' +
      'network, until AUDIT_RETENTION_DAYS; with LEGACY_VERIFY, a keyed digest of the address; sealed jobs and tickets, until TICKET_TTL_MS.',
    role: 'admin',
    event: 'delete_account',
    async change({ database, failures, post }, user) {
      const forget = async () => {
        await failures.forgetAccount(user)
        await post?.forget(user)
      }
      // Before the account: an unreachable Redis server would keep its counts and mails.
      await forget()
      await database.$transaction([
        database.mailToken.deleteMany({ where: { email: user.email } }),
        database.user.deleteMany({ where: { id: user.id } }),
      ])
      // Again, for what was added meanwhile; what a failure leaves lapses by itself.
      await forget().catch(() => undefined)
      return 1
    },
  },
]

const reasonAlone = { title: 'Reason', ...objectOf({ reason: Reason }) }

export async function accountChangeRoutes(app: FastifyInstance, deps: OperatorDeps): Promise<void> {
  for (const { path, role = 'support', event, body = reasonAlone, change, ...described } of changes) {
    const response = { ...changeResponses, 409: problemResponse }
    app.post<{ Params: { id: string }; Body: ChangeBody }>(
      `/v1/accounts/:id/${path}`,
      { config: { role, event }, schema: { ...described, tags: ['Accounts'], params: accountParams, body, response } },
      async (request) => {
        const account = await accountById(deps.database, request.params.id)
        const changed = await change(deps, account, request.body)
        recordChange(deps.audit, request, { event, userId: account.id, reason: request.body.reason, changed })
        return { changed }
      },
    )
  }
}

/** Has a mail sent. Resolves with 1 where it was queued. */
async function send(post: Post | undefined, ...mail: Parameters<Post['send']>): Promise<number> {
  if (post === undefined) throw new ApiError('mail_off')
  return (await post.send(...mail)) ? 1 : 0
}

/** Gives an account an address, and voids its links. False where another account has the address. */
async function changeAddress(
  database: Database,
  { userId, email, confirmed }: { userId: string; email: string; confirmed: boolean },
): Promise<boolean> {
  // The condition, because PostgreSQL logs a violated constraint together with the address.
  const sql = Prisma.sql`
    WITH changed AS (
      UPDATE users SET email = ${email}, updated_at = now(),
        email_confirmed_at = CASE WHEN ${confirmed}::boolean THEN now() WHEN email = ${email} THEN email_confirmed_at END
      WHERE id = ${userId}::uuid
        AND NOT EXISTS (SELECT FROM users AS others WHERE others.email = ${email} AND others.id <> ${userId}::uuid)
      RETURNING id
    ), void AS (
      UPDATE mail_tokens SET used_at = now() FROM changed WHERE user_id = changed.id AND used_at IS NULL
    )
    SELECT id FROM changed`
  try {
    return (await rawQuery(database, sql)).length > 0
  } catch (error) {
    if (isTaken(error)) return false
    throw error
  }
}
