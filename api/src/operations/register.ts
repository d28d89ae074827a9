/** POST /v1/users: hashes the password, then creates the account with the job's id. */

import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { expiryIn, mailTokenDigest, newMailToken } from '../mail/tokens.js'
import { ApiError } from '../plugins/errors.js'
import { UserBody } from '../schemas/bodies.js'
import { EmailField, NewPasswordField, normalizeEmail, normalizePassword } from '../schemas/credentials.js'
import { problemResponse } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { newcomers } from './access.js'
import { defineOperation } from './public-operation.js'

export const register = defineOperation({
  kind: 'register',
  method: 'POST',
  url: '/v1/users',
  operationId: 'register',
  tags: ['Accounts'],
  summary: 'Register',
  description:
    'Where mail is on, the answer is the same for an address that has an account, with an id that nobody has: its owner gets a mail, and ' +
    'nothing changes.',
  access: newcomers,
  body: schemaOf({ title: 'NewAccount', ...objectOf({ email: EmailField, password: NewPasswordField }) }),
  contents: schemaOf(objectOf({ email: { type: 'string' } })),
  success: { status: 201, body: schemaOf(UserBody) },
  problems: { 409: problemResponse },

  concerns: (_contents, { id }, succeeded) => (succeeded ? { userId: id } : {}),

  async start({ database, newPasswords, post }, { body }) {
    const email = normalizeEmail(body.email)
    newPasswords.check({ field: 'password', password: body.password, email })
    // Where mail is on, only the owner of a taken address is told, by mail.
    if (post === undefined && (await database.user.findUnique({ where: { email }, select: { id: true } })) !== null) {
      throw new ApiError('email_taken')
    }
    return { job: { name: 'hash', request: { password: normalizePassword(body.password) } }, contents: { email } }
  },

  async finish({ database, post, audit }, { email }, { id, verdict, client, requestId }) {
    if (verdict.kind !== 'hashed') throw new ApiError('internal_error')
    const createdAt = new Date()
    const answer = { id, email, createdAt: createdAt.toISOString() }
    if (post !== undefined) {
      const token = newMailToken()
      const account = { id, email, passwordHash: verdict.hash, createdAt, token, tokenLifeMs: post.lifeMsOf('welcome') }
      const outcome = await createOrKeep(database, account)
      if (outcome === 'used') throw new ApiError('ticket_used')
      // Beside the `ok` of every answer: only the audit may say that no account has this id.
      if (outcome === 'taken') audit.record({ event: 'register', outcome: 'email_taken', ip: client.ip, requestId })
      await post.send({ kind: 'welcome', email, token, isNew: outcome === 'created' }, email)
      return answer
    }
    // ON CONFLICT, because PostgreSQL logs a violated constraint together with the address.
    const sql = Prisma.sql`
      INSERT INTO users (id, email, password_hash, created_at, updated_at)
      VALUES (${id}::uuid, ${email}, ${verdict.hash}, ${createdAt}::timestamptz, ${createdAt}::timestamptz)
      ON CONFLICT DO NOTHING RETURNING id`
    const [created] = await rawQuery<{ id: string }>(database, sql)
    if (created !== undefined) return answer
    // Accounts have the id of their job, so the same id means that this ticket was redeemed before.
    const mine = await database.user.findUnique({ where: { id }, select: { id: true } })
    throw new ApiError(mine === null ? 'email_taken' : 'ticket_used')
  },
})

/**
 * Creates an account, unless its address is taken. In either case the token that confirms the
 * address is stored under the job's id, so a job counts once, and the database does the same work.
 */
async function createOrKeep(
  database: Database,
  account: { id: string; email: string; passwordHash: string; createdAt: Date; token: string; tokenLifeMs: number },
): Promise<'created' | 'taken' | 'used'> {
  const { id, email, passwordHash, createdAt, token, tokenLifeMs } = account
  // ON CONFLICT, because PostgreSQL logs a violated constraint together with the address.
  const [outcome] = await rawQuery<{ isFirst: boolean; isNew: boolean }>(
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
        ON CONFLICT DO NOTHING RETURNING id
      )
      SELECT EXISTS (SELECT FROM token) AS "isFirst", EXISTS (SELECT FROM created) AS "isNew"`,
  )
  if (!outcome?.isFirst) return 'used'
  return outcome.isNew ? 'created' : 'taken'
}
