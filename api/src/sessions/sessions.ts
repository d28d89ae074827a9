/**
 * Sessions: families of opaque refresh tokens, stored as SHA-256, each good for one refresh. Showing a token that has been
 * used already means that two parties hold the family, and ends it for both (RFC 9700, 4.14.2), but for a moment of grace: two
 * tabs of one browser refresh at once, and answers get lost.
 */
import { type Database, Prisma, rawQuery, type User } from '@spillway/prisma'
import { ApiError } from '../problems/errors.js'
import { endByReuse, type Rotated, rotate } from './refresh-rotation.js'
import { digest, familyOf, newRefreshToken } from './refresh-tokens.js'

export interface Sessions {
  /**
   * Opens a session with the id of the job that earned it. Returns its first refresh token, or why there is none:
   * `stale` when the password was changed since the job was made, `exists` when the job has earned its session already.
   */
  open(session: {
    id: string
    userId: string
    credentialVersion: number
  }): Promise<{ refreshToken: string } | 'stale' | 'exists'>
  /**
   * Trades a refresh token for the next one; the token that was replaced last, within its grace, for the same one again. Throws
   * `invalid_refresh_token`, and ends the family when the token was dead.
   */
  refresh(refreshToken: string): Promise<Rotated>
  /** Ends the session of a refresh token, alive or dead; does nothing for an unknown one. */
  end(refreshToken: string): Promise<void>
  /** The user of a session that is alive; undefined once it has ended, so that a logout counts at once. */
  userOf(session: { sessionId: string; userId: string }): Promise<User | undefined>
  /** Ends all sessions of a user but one, as part of a transaction. */
  endOthers(sessions: { userId: string; keptSessionId: string }, transaction: Prisma.TransactionClient): Promise<void>
}

export function createSessions(database: Database, options: { sessionTtlS: number; refreshGraceS: number }): Sessions {
  return {
    async open({ id, userId, credentialVersion }) {
      const refreshToken = newRefreshToken(id)
      const expiresAt = new Date(Date.now() + options.sessionTtlS * 1_000)
      // One statement: the credential is checked, the family and its first token are made, or nothing is. The lock makes it
      // wait for a change of password that is under way, which could not see this session to end it.
      const sql = Prisma.sql`
        WITH credential AS (
          SELECT id FROM users WHERE id = ${userId}::uuid AND credential_version = ${credentialVersion} FOR SHARE
        ), session AS (
          INSERT INTO sessions (id, user_id, expires_at)
          SELECT ${id}::uuid, credential.id, ${expiresAt}::timestamptz FROM credential
          ON CONFLICT (id) DO NOTHING RETURNING id
        ), token AS (
          INSERT INTO refresh_tokens (token_hash, family_hash, session_id, expires_at)
          SELECT ${digest(refreshToken)}, ${familyOf(refreshToken)?.familyHash}, session.id, ${expiresAt}::timestamptz FROM session
          RETURNING session_id
        )
        SELECT EXISTS (SELECT FROM credential) AS current, EXISTS (SELECT FROM token) AS opened`
      const [outcome] = await rawQuery<{ current: boolean; opened: boolean }>(database, sql)
      if (outcome?.opened) return { refreshToken }
      return outcome?.current ? 'exists' : 'stale'
    },

    async refresh(refreshToken) {
      const rotated = await rotate(database, refreshToken, options.refreshGraceS)
      if (rotated !== undefined) return rotated
      const reused = await endByReuse(database, refreshToken)
      throw new ApiError('invalid_refresh_token', reused ? { reason: 'refresh_token_reused' } : {})
    },

    async end(refreshToken) {
      await revoke(database, { tokens: { some: familyOf(refreshToken) ?? { tokenHash: digest(refreshToken) } } })
    },

    async userOf({ sessionId, userId }) {
      const session = await database.session.findFirst({
        where: { id: sessionId, userId, revokedAt: null, expiresAt: { gt: new Date() } },
        select: { user: true },
      })
      return session?.user
    },

    async endOthers({ userId, keptSessionId }, transaction) {
      await revoke(transaction, { userId, id: { not: keptSessionId } })
    },
  }
}

async function revoke(
  database: Pick<Database, 'session'>,
  where: Parameters<Database['session']['updateMany']>[0]['where'],
): Promise<void> {
  await database.session.updateMany({ where: { ...where, revokedAt: null }, data: { revokedAt: new Date() } })
}
