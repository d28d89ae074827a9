/**
 * Sessions: families of opaque refresh tokens, stored as SHA-256, each good for one refresh. Showing a token that has been
 * used already means that two parties hold the family, and ends it for both (RFC 9700, 4.14.2).
 */
import { createHash, randomBytes } from 'node:crypto'
import { type Database, Prisma, rawQuery, type User } from '@spillway/prisma'
import { ApiError } from './errors.js'

const TOKEN_BYTES = 32

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
  /** Trades a refresh token for the next one. Throws `invalid_refresh_token`, and ends the family when the token was used. */
  refresh(refreshToken: string): Promise<{ refreshToken: string; sessionId: string; userId: string }>
  /** Ends the session of a refresh token, alive or dead; does nothing for an unknown one. */
  end(refreshToken: string): Promise<void>
  /** The user of a session that is alive; undefined once it has ended, so that a logout counts at once. */
  userOf(session: { sessionId: string; userId: string }): Promise<User | undefined>
  /** Ends all sessions of a user but one, as part of a transaction. */
  endOthers(sessions: { userId: string; keptSessionId: string }, transaction: Prisma.TransactionClient): Promise<void>
}

export function createSessions(database: Database, options: { sessionTtlS: number }): Sessions {
  const newToken = () => randomBytes(TOKEN_BYTES).toString('base64url')

  return {
    async open({ id, userId, credentialVersion }) {
      const refreshToken = newToken()
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
          INSERT INTO refresh_tokens (token_hash, session_id, expires_at)
          SELECT ${digest(refreshToken)}, session.id, ${expiresAt}::timestamptz FROM session RETURNING session_id
        )
        SELECT EXISTS (SELECT FROM credential) AS current, EXISTS (SELECT FROM token) AS opened`
      const [outcome] = await rawQuery<{ current: boolean; opened: boolean }>(database, sql)
      if (outcome?.opened) return { refreshToken }
      return outcome?.current ? 'exists' : 'stale'
    },

    async refresh(refreshToken) {
      const next = newToken()
      // The old token dies and the new one is born in one statement, so of two refreshes at once only one succeeds.
      const sql = Prisma.sql`
        WITH used AS (
          UPDATE refresh_tokens SET used_at = now() FROM sessions
          WHERE token_hash = ${digest(refreshToken)} AND used_at IS NULL AND sessions.id = session_id
            AND sessions.revoked_at IS NULL AND sessions.expires_at > now()
          RETURNING sessions.id AS session_id, sessions.user_id, sessions.expires_at
        ), token AS (
          INSERT INTO refresh_tokens (token_hash, session_id, expires_at)
          SELECT ${digest(next)}, session_id, expires_at FROM used
        )
        SELECT session_id, user_id FROM used`
      const [refreshed] = await rawQuery<{ session_id: string; user_id: string }>(database, sql)
      if (refreshed !== undefined)
        return { refreshToken: next, sessionId: refreshed.session_id, userId: refreshed.user_id }
      const dead = await database.refreshToken.findUnique({ where: { tokenHash: digest(refreshToken) } })
      if (!dead?.usedAt) throw new ApiError('invalid_refresh_token')
      await revoke(database, { id: dead.sessionId })
      throw new ApiError('invalid_refresh_token', { reason: 'refresh_token_reused' })
    },

    async end(refreshToken) {
      await revoke(database, { tokens: { some: { tokenHash: digest(refreshToken) } } })
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

function digest(token: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(token).digest())
}
