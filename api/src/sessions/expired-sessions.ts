/** Periodically deletes expired sessions and their refresh tokens, tokens of mails, and the marks of used tickets. */
import { type Database, Prisma } from '@spillway/prisma'
import type { Logger } from '@spillway/worker/log'
import { type Rounds, startRounds } from '../rounds.js'

/** The average time between two rounds of a gateway, in milliseconds. */
const PERIOD_MS = 5 * 60_000
/** Limits of one statement: sessions it reads, and tokens and marks it deletes. They take some 20 ms; the statement timeout is 5 s. */
const SESSIONS = 100
const TOKENS = 2_000

/** Deletes at intervals, until closed. Failures are logged and retried in the next round. */
export function startDeletingExpiredSessions(deps: {
  database: Database
  log: Pick<Logger, 'warn'>
  periodMs?: number
}): Rounds {
  const { database, log, periodMs = PERIOD_MS } = deps
  return startRounds({
    periodMs,
    async round(signal) {
      let deleted: number
      do {
        deleted = 0
        for (const deleteSome of [deleteTokens, deleteSessions, deleteMailTokens, deleteUsedTickets])
          deleted += await deleteSome(database)
      } while (deleted > 0 && !signal.aborted)
    },
    onFailure: (error) => log.warn({ err: error }, 'expired sessions could not be deleted'),
  })
}

/**
 * The sessions that expired first, without those that another gateway is deleting. Only a day after their expiry: as long as a session
 * exists, its id refuses a replay of its ticket, which lives for an hour at most; and clocks differ.
 */
const expired = Prisma.sql`
  WITH expired AS MATERIALIZED (
    SELECT id FROM sessions WHERE expires_at < now() - interval '1 day' ORDER BY expires_at LIMIT ${SESSIONS}
    FOR UPDATE SKIP LOCKED
  )`

/** Deletes tokens of these sessions and returns their number. Without tokens, deleting a session is quick: nothing cascades. */
function deleteTokens(database: Database): Promise<number> {
  return database.$executeRaw`${expired}
    DELETE FROM refresh_tokens WHERE token_hash = ANY (ARRAY(
      SELECT token_hash FROM expired
      CROSS JOIN LATERAL (SELECT token_hash FROM refresh_tokens WHERE session_id = expired.id LIMIT ${TOKENS}) AS token
      LIMIT ${TOKENS}
    ))`
}

/** Deletes those of these sessions that have no tokens left, and returns their number. */
function deleteSessions(database: Database): Promise<number> {
  return database.$executeRaw`${expired}
    DELETE FROM sessions WHERE id = ANY (ARRAY(
      SELECT id FROM expired WHERE NOT EXISTS (SELECT FROM refresh_tokens WHERE session_id = expired.id)
    ))`
}

/** Deletes tokens of mails a day after their expiry, as above, and returns their number. */
function deleteMailTokens(database: Database): Promise<number> {
  return database.$executeRaw`
    DELETE FROM mail_tokens WHERE id = ANY (ARRAY(
      SELECT id FROM mail_tokens WHERE expires_at < now() - interval '1 day' ORDER BY expires_at LIMIT ${TOKENS}
      FOR UPDATE SKIP LOCKED
    ))`
}

/** Deletes marks of used tickets two hours after their use: a ticket lives for an hour at most, and clocks differ. Returns their number. */
function deleteUsedTickets(database: Database): Promise<number> {
  return database.$executeRaw`
    DELETE FROM used_tickets WHERE job_id = ANY (ARRAY(
      SELECT job_id FROM used_tickets WHERE used_at < now() - interval '2 hours' ORDER BY used_at LIMIT ${TOKENS}
      FOR UPDATE SKIP LOCKED
    ))`
}
