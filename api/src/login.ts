/** Login without HTTP: find the credential, verify it or a decoy in its place, then open a session and upgrade the hash. */
import { type Database, Prisma, rawQuery, type User } from '@spillway/prisma'
import { normalizeEmail, normalizePassword } from './credentials.js'
import { ApiError } from './errors.js'
import type { Finish, LoggedIn, LoginOperation, Started, Submit } from './operations.js'
import type { Sessions } from './sessions.js'
import type { IssueTokens } from './tokens.js'

export interface Login {
  start(input: { email: string; password: string }, submit: Submit): Promise<Started<LoginOperation>>
  finish: Finish<LoginOperation, LoggedIn>
}

export function createLogin(deps: { database: Database; sessions: Sessions; issueTokens: IssueTokens }): Login {
  const { database, sessions, issueTokens } = deps

  return {
    async start({ email, password }, submit) {
      const sql = Prisma.sql`
        SELECT id, password_hash AS "passwordHash", credential_version AS "credentialVersion"
        FROM users WHERE email = ${normalizeEmail(email)}`
      const [user] = await rawQuery<Pick<User, 'id' | 'passwordHash' | 'credentialVersion'>>(database, sql)
      const pending = await submit('verify', {
        password: normalizePassword(password),
        storedHash: user?.passwordHash ?? null,
      })
      return {
        operation: { kind: 'login', userId: user?.id ?? null, credentialVersion: user?.credentialVersion ?? 0 },
        pending,
      }
    },

    async finish({ userId, credentialVersion }, jobId, verdict) {
      if (userId === null) throw new ApiError('invalid_credentials', { reason: 'unknown_account' })
      if (verdict.kind !== 'match') throw new ApiError('invalid_credentials', { reason: 'wrong_password' })
      if (verdict.hash !== undefined) {
        // Only while the password is still the one that was verified. First, so that a failure leaves the ticket good.
        await database.user.updateMany({
          where: { id: userId, credentialVersion },
          data: { passwordHash: verdict.hash },
        })
      }
      const session = await sessions.open({ id: jobId, userId, credentialVersion })
      if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
      if (session === 'exists') throw new ApiError('ticket_used')
      return { status: 200, body: issueTokens({ userId, sessionId: jobId, refreshToken: session.refreshToken }) }
    },
  }
}
