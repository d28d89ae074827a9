/** POST /v1/users: hashes the password, then creates the account with the job's id. */

import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { ApiError } from '../http/problems.js'
import { expiryIn, mailTokenDigest, newMailToken } from '../mail/tokens.js'
import { EmailField, NewPasswordField, normalizeEmail, normalizePassword } from '../schemas/credentials.js'
import { problemResponse, UserBody } from '../schemas/responses.js'
import type { Deps } from '../servers.js'
import { defineEndpoint, recordEnding, schemaOf } from './endpoint.js'

export const register = defineEndpoint({
  route: {
    kind: 'register',
    method: 'POST',
    url: '/v1/users',
    operationId: 'register',
    tags: ['Accounts'],
    summary: 'Register',
    description:
      'If mail is configured, the answer is the same for a taken address and for a free one. For a taken address, the id belongs to no ' +
      'account, the owner of the address gets a mail, and the existing account does not change.',
    onRequest: ({ isRegistrationOpen }: Deps) => (isRegistrationOpen ? [] : [refuseRegistration]),
    body: schemaOf({ title: 'NewAccount', ...objectOf({ email: EmailField, password: NewPasswordField }) }),
    success: { status: 201, body: schemaOf(UserBody) },
    problems: { 409: problemResponse },
  },
  remembered: schemaOf(objectOf({ email: { type: 'string' } })),

  async start(deps: Deps, { body, request, reply, earlier }) {
    const { database, newPasswords, post, limits } = deps
    if (earlier === undefined) {
      await limits.network(request, reply)
      if (post !== undefined) await limits.mailNetwork(request, reply)
      await limits.account(request, reply)
    }
    const email = normalizeEmail(body.email)
    newPasswords.check({ field: 'password', password: body.password, email })
    // If mail is configured, a mail tells the owner of a taken address, and nobody else learns of it.
    if (post === undefined && (await database.user.findUnique({ where: { email }, select: { id: true } })) !== null) {
      throw new ApiError('email_taken')
    }
    return {
      remembered: { email },
      job: { name: 'hash', request: { password: normalizePassword(body.password) } },
    }
  },

  async finish({ database, post, audit, isRegistrationOpen }, { email }, { id, result, client, requestId }) {
    // Its ticket may be from before registration was closed.
    if (!isRegistrationOpen) throw new ApiError('registration_closed')
    if (result.kind !== 'hashed') throw new ApiError('internal_error')
    const createdAt = new Date()
    const body = { id, email, createdAt: createdAt.toISOString() }
    if (post !== undefined) {
      const token = newMailToken()
      const account = { id, email, passwordHash: result.hash, createdAt, token, tokenLifeMs: post.lifeMsOf('welcome') }
      const isNew = await createOrKeep(database, account)
      // In addition to `ok`: only the audit may tell that no account has this id.
      if (!isNew) audit.record({ event: 'register', outcome: 'email_taken', ip: client.ip, requestId })
      const queued = await post.send({ kind: 'welcome', email, token, isNew }, email)
      if (queued !== 'ok') audit.record({ event: 'register', outcome: queued, email, ip: client.ip, requestId })
      return { body }
    }
    // ON CONFLICT is needed, because PostgreSQL logs a violated constraint with the address.
    const sql = Prisma.sql`
      INSERT INTO users (id, email, password_hash, created_at, updated_at)
      VALUES (${id}::uuid, ${email}, ${result.hash}, ${createdAt}::timestamptz, ${createdAt}::timestamptz)
      ON CONFLICT DO NOTHING RETURNING id`
    const [created] = await rawQuery<{ id: string }>(database, sql)
    if (created !== undefined) return { body }
    // An account has the id of its first job. It is there if the answer to its creation was lost.
    const mine = await database.user.findUnique({ where: { id }, select: { createdAt: true } })
    if (mine === null) throw new ApiError('email_taken')
    return { body: { ...body, createdAt: mine.createdAt.toISOString() } }
  },

  ended: (deps, _remembered, ending) =>
    recordEnding(deps, 'register', ending, ending.kind === 'succeeded' ? { userId: ending.id } : {}),
})

/**
 * Creates an account, unless its address is taken. In both cases the token that confirms the
 * address is stored under the job's id, and the database does the same work. If the answer was lost,
 * the job's row has the outcome, and gets the token of the mail that is sent now. Resolves with whether
 * the account is new.
 */
async function createOrKeep(
  database: Database,
  account: { id: string; email: string; passwordHash: string; createdAt: Date; token: string; tokenLifeMs: number },
): Promise<boolean> {
  const { id, email, passwordHash, createdAt, token, tokenLifeMs } = account
  // ON CONFLICT is needed, because PostgreSQL logs a violated constraint with the address.
  const [outcome] = await rawQuery<{ isNew: boolean }>(
    database,
    Prisma.sql`
      WITH created AS (
        INSERT INTO users (id, email, password_hash, created_at, updated_at)
        VALUES (${id}::uuid, ${email}, ${passwordHash}, ${createdAt}::timestamptz, ${createdAt}::timestamptz)
        ON CONFLICT DO NOTHING RETURNING id, email
      ), token AS (
        INSERT INTO mail_tokens (id, token_hash, purpose, user_id, email, credential_version, expires_at)
        SELECT ${id}::uuid, ${mailTokenDigest(token)}::bytea, 'confirm', created.id, coalesce(created.email, ''), 1,
          ${expiryIn(tokenLifeMs)}
        FROM (SELECT) AS one LEFT JOIN created ON true
        ON CONFLICT (id) DO UPDATE SET token_hash = excluded.token_hash RETURNING user_id
      )
      SELECT user_id IS NOT NULL AS "isNew" FROM token`,
  )
  return outcome?.isNew === true
}

async function refuseRegistration(): Promise<never> {
  throw new ApiError('registration_closed')
}
