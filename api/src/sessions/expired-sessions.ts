/** Periodically deletes expired sessions and their refresh tokens. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Database, Prisma } from '@spillway/prisma'
import type { Logger } from '@spillway/worker/log'

/** The average time between two rounds of a gateway, in milliseconds. */
const PERIOD_MS = 5 * 60_000
/** Limits of one statement: sessions it reads, and tokens it deletes. They take some 20 ms; the statement timeout is 5 s. */
const SESSIONS = 100
const TOKENS = 2_000

export interface ExpiredSessions {
  /** Stops, after the batch in progress. */
  close(): Promise<void>
}

/** Deletes at intervals, until closed. Failures are logged and retried in the next round. */
export function startDeletingExpiredSessions(deps: {
  database: Database
  log: Pick<Logger, 'warn'>
  periodMs?: number
}): ExpiredSessions {
  const { database, log, periodMs } = deps
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
      await sleep(pauseMs(periodMs), undefined, { signal }).catch(() => {})
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

/** The time until the next round: 0.5 to 1.5 of the period, so that gateways do not run them together. */
export function pauseMs(periodMs = PERIOD_MS): number {
  return periodMs * (0.5 + Math.random())
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
