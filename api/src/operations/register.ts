/** POST /v1/users: refuses a taken address early, hashes the password, then creates the account with the job's id. */
import { Prisma, rawQuery } from '@spillway/prisma'
import { ApiError } from '../problems/errors.js'
import { UserBody } from '../schemas/bodies.js'
import { EmailField, NewPasswordField, normalizeEmail, normalizePassword } from '../schemas/credentials.js'
import { problemResponse } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { anyone } from './access.js'
import { defineOperation } from './public-operation.js'

export const register = defineOperation({
  kind: 'register',
  method: 'POST',
  url: '/v1/users',
  operationId: 'register',
  tags: ['Accounts'],
  summary: 'Register',
  access: anyone,
  body: schemaOf({
    title: 'NewAccount',
    type: 'object',
    properties: { email: EmailField, password: NewPasswordField },
    required: ['email', 'password'],
    additionalProperties: false,
  }),
  contents: schemaOf({
    type: 'object',
    properties: { email: { type: 'string' } },
    required: ['email'],
    additionalProperties: false,
  }),
  answer: { status: 201, body: schemaOf(UserBody) },
  problems: { 409: problemResponse },

  async start({ database, checkPassword }, { body }, submit) {
    const email = normalizeEmail(body.email)
    checkPassword({ field: 'password', password: body.password, email })
    if ((await database.user.findUnique({ where: { email }, select: { id: true } })) !== null) {
      throw new ApiError('email_taken')
    }
    const pending = await submit('hash', { password: normalizePassword(body.password) })
    return { contents: { email }, pending }
  },

  async finish({ database }, { email }, { id, verdict }) {
    if (verdict.kind !== 'hashed') throw new ApiError('internal_error')
    const createdAt = new Date()
    // ON CONFLICT, because PostgreSQL logs a violated constraint together with the address.
    const sql = Prisma.sql`
      INSERT INTO users (id, email, password_hash, created_at, updated_at)
      VALUES (${id}::uuid, ${email}, ${verdict.hash}, ${createdAt}::timestamptz, ${createdAt}::timestamptz)
      ON CONFLICT DO NOTHING RETURNING id`
    const [created] = await rawQuery<{ id: string }>(database, sql)
    if (created !== undefined) return { id, email, createdAt: createdAt.toISOString() }
    // Accounts have the id of their job, so the same id means that this ticket was redeemed before.
    const mine = await database.user.findUnique({ where: { id }, select: { id: true } })
    throw new ApiError(mine === null ? 'email_taken' : 'ticket_used')
  },
})
