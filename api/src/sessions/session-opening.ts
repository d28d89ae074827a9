/** Opens sessions in the database, and ends the oldest ones of a user who has too many. */
import { randomInt } from 'node:crypto'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import {
  idleEnd,
  isAlive,
  type Rotated,
  type RotationOptions,
  subjectColumns,
  type TokenSubject,
} from './refresh-rotation.js'
import { digest, familyOf, newRefreshToken } from './refresh-tokens.js'
import type { SessionClient } from './session-client.js'

/**
 * A user has about so many live sessions at most, so that a change of the password always has the time to end them, whatever somebody who
 * knew it has opened.
 */
export const LIVE_MAX = 1_000
/**
 * One opening of so many, by chance, looks for sessions beyond the maximum: 500 in a row do not with a probability of 10^-9. A look reads
 * all rows of the user, also those of sessions that ended within the last day: five logins a second leave 430,000 of them.
 */
const OPENINGS_PER_LOOK = 25
/** What one look ends at most, far within the statement timeout of 5 s. */
const ENDED_MAX = 1_000

export interface OpeningOptions extends RotationOptions {
  sessionTtlS: number
  /** Whether only accounts whose address is confirmed open sessions. */
  needsConfirmedEmail: boolean
}

export interface NewSession extends SessionClient {
  /** Of the job that verified the password. */
  id: string
  userId: string
  credentialVersion: number
}

/** Opens a session, or tells why not: `open` of the interface Sessions. */
export async function openSession(
  database: Database,
  { id, userId, credentialVersion, device, address }: NewSession,
  options: OpeningOptions,
): Promise<Rotated | 'stale' | 'exists'> {
  const refreshToken = newRefreshToken(id)
  // One statement checks the credential and inserts the session with its first token, or does nothing. FOR SHARE waits for a
  // concurrent change of the password, which could not see this session to end it.
  const sql = Prisma.sql`
    WITH credential AS (
      SELECT id, email, email_confirmed_at FROM users WHERE id = ${userId}::uuid AND credential_version = ${credentialVersion}
        AND (email_confirmed_at IS NOT NULL OR NOT ${options.needsConfirmedEmail}::boolean) AND disabled_at IS NULL FOR SHARE
    ), session AS (
      INSERT INTO sessions (id, user_id, expires_at, device, address)
      SELECT ${id}::uuid, credential.id, now() + make_interval(secs => ${options.sessionTtlS}::int), ${device}::text, ${address}::text FROM credential
      ON CONFLICT (id) DO NOTHING RETURNING id, created_at, expires_at
    ), token AS (
      INSERT INTO refresh_tokens (token_hash, family_hash, session_id, expires_at)
      SELECT ${digest(refreshToken)}, ${familyOf(refreshToken)?.familyHash}, sessions.id, ${idleEnd(options)} FROM session AS sessions
      RETURNING session_id
    )${randomInt(OPENINGS_PER_LOOK) === 0 ? oldestEnd(userId) : Prisma.empty}
    SELECT sessions.id IS NOT NULL AS opened, ${subjectColumns} FROM credential LEFT JOIN session AS sessions ON true`
  type Row = Omit<TokenSubject, 'sessionId' | 'userId'> & { opened: boolean }
  const [row] = await rawQuery<Row>(database, sql)
  if (row === undefined) return 'stale'
  const { opened, ...subject } = row
  return opened ? { ...subject, sessionId: id, userId, refreshToken } : 'exists'
}

/**
 * Ends the sessions beyond the maximum, if one was opened. That one is not yet seen here, hence one less. Locked rows are skipped: another
 * login is ending them, and two that wait for each other would fail.
 */
function oldestEnd(userId: string): Prisma.Sql {
  return Prisma.sql`, excess AS (
      SELECT id FROM sessions WHERE EXISTS (SELECT FROM session) AND user_id = ${userId}::uuid AND ${isAlive}
      ORDER BY created_at DESC OFFSET ${LIVE_MAX - 1} LIMIT ${ENDED_MAX}
    ), locked AS (
      SELECT id FROM sessions WHERE id IN (SELECT id FROM excess) AND revoked_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
    ), ended AS (
      UPDATE sessions SET revoked_at = now(), expires_at = now() FROM locked WHERE sessions.id = locked.id
    )`
}
