/** What operators do to one account. */
import { againIfLost, isTaken, Prisma, rawQuery, type User } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { eraseAccount, leaveOut } from '../accounts/deletion.js'
import type { AuditEventName } from '../audit/store.js'
import { ApiError, orUnknown, redisUnavailable } from '../http/problems.js'
import type { Post } from '../mail/post.js'
import { newMailToken } from '../mail/tokens.js'
import { EmailField, normalizeEmail } from '../schemas/credentials.js'
import { problemResponse } from '../schemas/responses.js'
import { accountById, accountId, accountParams } from './account-state.js'
import { changeResponses, type OperatorDeps, Reason, recordChange } from './change.js'

interface Change {
  /** The path after the account's path. */
  path: string
  operationId: string
  summary: string
  description?: string
  /** The least role [support]. */
  role?: 'admin'
  event: AuditEventName
  /** The schema of the body [only a reason]. */
  body?: object
  /** Resolves with how many things changed. */
  change(deps: OperatorDeps, account: User, body: ChangeBody, request: ChangeRequest): Promise<number>
}

/** What the audit has of a request. */
type ChangeRequest = Pick<FastifyRequest, 'operator' | 'ip' | 'id'>

/** The body, validated by the schema of the change. */
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
    summary: 'Reset the failed logins of an account',
    description: 'The next login is not delayed.',
    event: 'forget_failures',
    change: ({ guessing }, { email }) => guessing.forget(email),
  },
  {
    path: 'end-sessions',
    operationId: 'endAllSessions',
    summary: 'End all sessions of an account',
    description:
      'After this, introspection returns inactive for its access tokens. All devices are unknown until their next login. Earlier tickets and ' +
      'links are void.',
    event: 'end_all_sessions',
    change: ({ database, sessions }, { id }) =>
      database.$transaction(async (transaction) => {
        // This goes first, because it waits for logins that are opening sessions.
        await transaction.$executeRaw`
          UPDATE users SET credential_version = credential_version + 1, links_void_before = now(), updated_at = now()
          WHERE id = ${id}::uuid`
        // The version does not void a link that confirms the address.
        await transaction.mailToken.updateMany({ where: { userId: id, usedAt: null }, data: { usedAt: new Date() } })
        return await sessions.endAll(id, transaction)
      }),
  },
  {
    path: 'end-session',
    operationId: 'endSession',
    summary: 'End one session of an account',
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
    summary: 'Disable an account',
    description:
      'Ends its sessions. Until it is enabled, logins get the answer for a wrong password, its links are invalid, and no further ones are sent.',
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
    summary: 'Enable an account',
    event: 'enable_account',
    async change({ database }, { id }) {
      const where = { id, disabledAt: { not: null } }
      return (await database.user.updateMany({ where, data: { disabledAt: null } })).count
    },
  },
  {
    path: 'send-reset',
    operationId: 'sendResetLink',
    summary: 'Send a link that sets a new password',
    description: 'A disabled account gets no link.',
    event: 'request_password_reset',
    change: ({ post }, user) => send(post, user, { kind: 'reset', email: user.email, token: newMailToken() }),
  },
  {
    path: 'send-confirmation',
    operationId: 'sendConfirmationLink',
    summary: 'Send a link that confirms the address of an account',
    description: 'A disabled account gets no link.',
    event: 'request_email_confirmation',
    change: ({ post }, user) => send(post, user, { kind: 'confirm', userId: user.id, token: newMailToken() }),
  },
  {
    path: 'change-email',
    operationId: 'changeAddress',
    summary: 'Change or confirm the address of an account',
    description:
      'The address changes at once, and earlier links are void. The old address gets a notice, and a keyed digest of it remains, so that an import does not bring it back. The new address gets a link that confirms it, ' +
      'unless `confirmed` is true.',
    event: 'change_email',
    body: {
      title: 'NewAddress',
      ...objectOf(
        { reason: Reason, email: EmailField },
        { confirmed: { type: 'boolean', description: "Whether the address is known to be the owner's [false]" } },
      ),
    },
    async change(deps, user, { email: given, confirmed = false, reason }, { operator, ip, id: requestId }) {
      const { post, audit } = deps
      const email = normalizeEmail(given)
      const isOther = email !== user.email
      if (!(await changeAddress(deps, user, { email, confirmed }))) throw new ApiError('email_taken')
      const before = { email: user.email, isConfirmed: user.emailConfirmedAt !== null }
      if (isOther) await post?.notify(before, 'changed')
      const link = { kind: 'confirm', userId: user.id, token: newMailToken() } as const
      const outcome = confirmed ? 'ok' : ((await post?.send(link, email)) ?? 'ok')
      // In addition to the change of the address, which was made.
      const event = { event: 'request_email_confirmation', outcome, userId: user.id, ip, requestId } as const
      if (outcome !== 'ok') audit.record({ ...event, operator: operator.name, reason })
      return isOther || confirmed ? 1 : 0
    },
  },
  {
    path: 'delete',
    operationId: 'deleteAccount',
    summary: 'Delete an account and its data',
    description:
      'Deletes the account, its sessions, links, counts of failures and unsent mails. No mail is sent. While a mail to the account is being ' +
      'sent, or Redis is unavailable, the answer is 503 and the account remains. Audit events, with id and network, remain for ' +
      'AUDIT_RETENTION_DAYS; sealed jobs and tickets remain for TICKET_TTL_MS; counts of mails remain for an hour; keyed digests of address and id remain, so that an import does ' +
      'not bring the account back.',
    role: 'admin',
    event: 'delete_account',
    async change(deps, { id, email }) {
      return await againIfLost(async (mayBeDone) => {
        const erased = await eraseAccount(deps, { id, email })
        return erased === 'erased' || mayBeDone ? 1 : 0
      })
    },
  },
]

const reasonAlone = { title: 'Reason', ...objectOf({ reason: Reason }) }

export async function accountChangeRoutes(app: FastifyInstance, deps: OperatorDeps): Promise<void> {
  for (const { path, role = 'support', event, body = reasonAlone, change, ...described } of changes) {
    const response = { ...changeResponses, 409: problemResponse, 429: problemResponse }
    app.post<{ Params: { id: string }; Body: ChangeBody }>(
      `/v1/accounts/:id/${path}`,
      { config: { role, event }, schema: { ...described, tags: ['Accounts'], params: accountParams, body, response } },
      async (request) => {
        const account = await accountById(deps.database, request.params.id)
        const changed = await orUnknown(change(deps, account, request.body, request))
        recordChange(deps.audit, request, { event, userId: account.id, reason: request.body.reason, changed })
        return { changed }
      },
    )
  }
}

/** Queues a mail with a link. Throws why it was not queued. */
async function send(
  post: Post | undefined,
  { email, disabledAt }: User,
  request: Parameters<Post['send']>[0],
): Promise<number> {
  if (disabledAt !== null) throw new ApiError('account_is_disabled')
  const queued = (await post?.send(request, email)) ?? 'mail_off'
  if (queued === 'redis') throw redisUnavailable()
  if (queued !== 'ok') throw new ApiError(queued)
  return 1
}

/** Changes an address and voids its links. False if another account has the address. */
async function changeAddress(
  { database, keyring }: OperatorDeps,
  { id: userId, email: before }: User,
  { email, confirmed }: { email: string; confirmed: boolean },
): Promise<boolean> {
  const left = Prisma.sql`changed WHERE email <> ${before}`
  // The condition is needed, because PostgreSQL logs a violated constraint with the address.
  const sql = Prisma.sql`
    WITH changed AS (
      UPDATE users SET email = ${email}, links_void_before = now(), updated_at = now(),
        email_confirmed_at = CASE WHEN ${confirmed}::boolean THEN now() WHEN email = ${email} THEN email_confirmed_at END
      WHERE id = ${userId}::uuid
        AND NOT EXISTS (SELECT FROM users AS others WHERE others.email = ${email} AND others.id <> ${userId}::uuid)
      RETURNING id, email
    ), void AS (
      UPDATE mail_tokens SET used_at = now() FROM changed WHERE user_id = changed.id AND used_at IS NULL
    ), left_out AS (${leaveOut([before], keyring, left)})
    SELECT id FROM changed`
  try {
    return (await rawQuery(database, sql)).length > 0
  } catch (error) {
    if (isTaken(error)) return false
    throw error
  }
}
