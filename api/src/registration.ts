/** Registration without HTTP: refuse a taken address early, hash, then create the account under the job's id. */
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { normalizeEmail, normalizePassword } from './credentials.js'
import { ApiError } from './errors.js'
import type { CheckNewPassword } from './new-password.js'
import type { Finish, Registered, RegisterOperation, Started, Submit } from './operations.js'

export interface Registration {
  /** Throws `invalid_request` and `email_taken` before any hashing. */
  start(input: { email: string; password: string }, submit: Submit): Promise<Started<RegisterOperation>>
  finish: Finish<RegisterOperation, Registered>
}

export function createRegistration(deps: { database: Database; checkPassword: CheckNewPassword }): Registration {
  const { database, checkPassword } = deps
  return {
    async start({ email: given, password }, submit) {
      const email = normalizeEmail(given)
      checkPassword({ field: 'password', password, email })
      if ((await database.user.findUnique({ where: { email }, select: { id: true } })) !== null) {
        throw new ApiError('email_taken')
      }
      const pending = await submit('hash', { password: normalizePassword(password) })
      return { operation: { kind: 'register', email }, pending }
    },

    async finish({ email }, jobId, verdict) {
      if (verdict.kind !== 'hashed') throw new ApiError('internal_error')
      const createdAt = new Date()
      // A violated constraint would be written to PostgreSQL's log, with the address in it; a conflict that is expected is not.
      const sql = Prisma.sql`
        INSERT INTO users (id, email, password_hash, created_at, updated_at)
        VALUES (${jobId}::uuid, ${email}, ${verdict.hash}, ${createdAt}::timestamptz, ${createdAt}::timestamptz)
        ON CONFLICT DO NOTHING RETURNING id`
      const [created] = await rawQuery<{ id: string }>(database, sql)
      if (created !== undefined) {
        return { status: 201, body: { id: jobId, email, createdAt: createdAt.toISOString() } }
      }
      // The account has the job's id, so the same id again is the same ticket again.
      const mine = await database.user.findUnique({ where: { id: jobId }, select: { id: true } })
      throw new ApiError(mine === null ? 'email_taken' : 'ticket_used')
    },
  }
}
