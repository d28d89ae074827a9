/** Registration without HTTP: refuse a taken address early, hash, then create the account under the job's id. */
import { type Database, violatedUniqueConstraint } from '@spillway/prisma'
import { normalizeEmail, normalizePassword } from './credentials.js'
import { ApiError } from './errors.js'
import type { Finish, Registered, RegisterOperation, Started, Submit } from './operations.js'

export interface Registration {
  /** Throws `email_taken` before any hashing. */
  start(input: { email: string; password: string }, submit: Submit): Promise<Started<RegisterOperation>>
  finish: Finish<RegisterOperation, Registered>
}

export function createRegistration({ database }: { database: Database }): Registration {
  return {
    async start({ email: given, password }, submit) {
      const email = normalizeEmail(given)
      if ((await database.user.findUnique({ where: { email }, select: { id: true } })) !== null) {
        throw new ApiError('email_taken')
      }
      const pending = await submit('hash', { password: normalizePassword(password) })
      return { operation: { kind: 'register', email }, pending }
    },

    async finish({ email }, jobId, verdict) {
      if (verdict.kind !== 'hashed') throw new ApiError('internal_error')
      try {
        const user = await database.user.create({ data: { id: jobId, email, passwordHash: verdict.hash } })
        return { status: 201, body: { id: user.id, email: user.email, createdAt: user.createdAt.toISOString() } }
      } catch (error) {
        const constraint = violatedUniqueConstraint(error)
        if (constraint === undefined) throw error
        // The account has the job's id, so the same id again is the same ticket again.
        throw new ApiError(constraint.includes('email') ? 'email_taken' : 'ticket_used')
      }
    },
  }
}
