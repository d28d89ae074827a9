/** Deletes sessions that have expired, and their refresh tokens before them, so that the tables hold no more than is in use. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, Prisma } from '@spillway/prisma'
import type { Logger } from '@spillway/worker/log'

/** Between two rounds of a gateway, on average: half as long to half as long again, so that many do not come at once. */
const PERIOD_MS = 5 * 60_000
/** Sessions looked at in one statement, and tokens deleted in one: some 20 ms, of the 5 s that a statement has. */
const SESSIONS = 100
const TOKENS = 2_000

export interface ExpiredSessions {
  /** Starts no batch any more, and waits for the one in hand. */
  close(): Promise<void>
}

/** Starts to delete at intervals, until closed. What fails is logged, and tried again in the next round. */
export function startDeletingExpiredSessions(deps: {
  database: Database
  log: Pick<Logger, 'warn'>
  periodMs?: number
}): ExpiredSessions {
  const { database, log, periodMs = PERIOD_MS } = deps
  const closing = new AbortController()
  const { signal } = closing

  async function deleteAll(): Promise<void> {
    try {
      while (!signal.aborted && (await deleteTokens(database)) + (await deleteSessions(database)) > 0);
    } catch (error) {
      log.warn({ err: error }, 'expired sessions could not be deleted')
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await sleep(periodMs * (0.5 + Math.random()), undefined, { signal }).catch(() => {})
      await deleteAll()
    }
  }

  const running = run()
  return {
    async close() {
      closing.abort()
      await running
    },
  }
}

/**
 * The sessions that expired first and are in no other gateway's hand. A day later: a session's id refuses the ticket that opened it,
 * which lives for an hour at most, and clocks differ.
 */
const expired = Prisma.sql`
  WITH expired AS MATERIALIZED (
    SELECT id FROM sessions WHERE expires_at < now() - interval '1 day' ORDER BY expires_at LIMIT ${SESSIONS}
    FOR UPDATE SKIP LOCKED
  )`

/** Deletes tokens of these sessions, and tells how many. Without them a session is deleted at once, whatever it held. */
function deleteTokens(database: Database): Promise<number> {
  return database.$executeRaw`${expired}
    DELETE FROM refresh_tokens WHERE token_hash = ANY (ARRAY(
      SELECT token_hash FROM expired
      CROSS JOIN LATERAL (SELECT token_hash FROM refresh_tokens WHERE session_id = expired.id LIMIT ${TOKENS}) AS token
      LIMIT ${TOKENS}
    ))`
}

/** Deletes those of these sessions that have no token any more, and tells how many. */
function deleteSessions(database: Database): Promise<number> {
  return database.$executeRaw`${expired}
    DELETE FROM sessions WHERE id = ANY (ARRAY(
      SELECT id FROM expired WHERE NOT EXISTS (SELECT FROM refresh_tokens WHERE session_id = expired.id)
    ))`
}
