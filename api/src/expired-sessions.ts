/** Deletes sessions that have expired, and their refresh tokens with them, so that the tables hold no more than is in use. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '@spillway/prisma'
import type { Logger } from '@spillway/worker/log'

/** Between two rounds of a gateway, on average: half as long to half as long again, so that many do not come at once. */
const PERIOD_MS = 5 * 60_000
/** Sessions at a time: 1.3 s where each brings 2,900 refresh tokens along (30 days, one in 15 minutes), of the 5 s a statement has. */
const BATCH = 100

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
      while (!signal.aborted && (await deleteBatch(database)) === BATCH);
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
 * Deletes those that expired first, and tells how many. A day later: a session's id refuses the ticket that opened it, which lives
 * for an hour at most, and clocks differ. What another gateway is deleting is left to it.
 */
function deleteBatch(database: Database): Promise<number> {
  return database.$executeRaw`
    DELETE FROM sessions WHERE id IN (
      SELECT id FROM sessions WHERE expires_at < now() - interval '1 day' ORDER BY expires_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
    )`
}
