/** The exchange of refresh tokens in the database, by PostgreSQL's clock: a statement each, however many gateways ask at once. */
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { digest, type Family, familyOf, newRefreshToken, newSalt, successorOf } from './refresh-tokens.js'

export interface Rotated {
  refreshToken: string
  sessionId: string
  userId: string
}

type Row = Omit<Rotated, 'refreshToken'>

const isAlive = Prisma.sql`sessions.revoked_at IS NULL AND sessions.expires_at > now()`

/**
 * Replaces the living token of a session. The one that was replaced last gives the same successor again for `graceS` seconds.
 * Undefined for any other token, and where the session has ended.
 */
export async function rotate(database: Database, token: string, graceS: number): Promise<Rotated | undefined> {
  const family = familyOf(token)
  if (family === undefined) return await beginFamily(database, token)
  const [shown, salt] = [digest(token), newSalt()]
  // Who comes second waits for the row, and sees it as the first has left it: in place of a new successor it gets that one's.
  const sql = Prisma.sql`
    UPDATE refresh_tokens SET
      token_hash = CASE WHEN token_hash = ${shown} THEN ${digest(successorOf(token, salt))} ELSE token_hash END,
      salt = CASE WHEN token_hash = ${shown} THEN ${salt} ELSE salt END,
      replaced_at = CASE WHEN token_hash = ${shown} THEN now() ELSE replaced_at END,
      previous_hash = ${shown}
    FROM sessions
    WHERE ${isOf(family)} AND used_at IS NULL AND sessions.id = session_id AND ${isAlive}
      AND (token_hash = ${shown}
        OR previous_hash = ${shown} AND ${graceS}::int > 0 AND replaced_at > now() - make_interval(secs => ${graceS}::int))
    RETURNING session_id AS "sessionId", user_id AS "userId", salt`
  const [row] = await rawQuery<Row & Record<'salt', Uint8Array>>(database, sql)
  return row && { refreshToken: successorOf(token, row.salt), sessionId: row.sessionId, userId: row.userId }
}

/**
 * The same for a token of the versions before families, which added a row for each: its successor begins a family. No grace.
 * Not needed any more once the last of them has expired, SESSION_TTL_S after the upgrade.
 */
async function beginFamily(database: Database, token: string): Promise<Rotated | undefined> {
  const known = await database.refreshToken.findUnique({
    where: { tokenHash: digest(token) },
    select: { sessionId: true },
  })
  if (known === null) return undefined
  const next = newRefreshToken(known.sessionId)
  const sql = Prisma.sql`
    WITH used AS (
      UPDATE refresh_tokens SET used_at = now() FROM sessions
      WHERE token_hash = ${digest(token)} AND family_hash IS NULL AND used_at IS NULL AND sessions.id = session_id AND ${isAlive}
      RETURNING session_id, user_id, sessions.expires_at
    ), token AS (
      INSERT INTO refresh_tokens (token_hash, family_hash, session_id, expires_at)
      SELECT ${digest(next)}, ${familyOf(next)?.familyHash}, session_id, expires_at FROM used
    )
    SELECT session_id AS "sessionId", user_id AS "userId" FROM used`
  const [row] = await rawQuery<Row>(database, sql)
  return row && { ...row, refreshToken: next }
}

/** Ends the session that a dead token is of. Tells whether there was one to end. */
export async function endByReuse(database: Database, token: string): Promise<boolean> {
  const [shown, family] = [digest(token), familyOf(token)]
  const sql = Prisma.sql`
    UPDATE sessions SET revoked_at = now() FROM refresh_tokens
    WHERE sessions.id = session_id AND ${isAlive} AND (token_hash <> ${shown} OR used_at IS NOT NULL)
      AND ${family === undefined ? Prisma.sql`token_hash = ${shown}` : isOf(family)}
    RETURNING sessions.id`
  return (await rawQuery<{ id: string }>(database, sql)).length > 0
}

function isOf({ sessionId, familyHash }: Family): Prisma.Sql {
  return Prisma.sql`session_id = ${sessionId}::uuid AND family_hash = ${familyHash}`
}
