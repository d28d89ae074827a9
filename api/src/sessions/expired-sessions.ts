/** Periodically deletes expired sessions, tokens of mails, marks of used tickets, and blocks. */

import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import { firstIdAt } from '@spillway/queue/wire/id'
import { Rounds } from '../rounds.js'

/** The average time between two rounds of a gateway, in milliseconds. */
const PERIOD_MS = 5 * 60_000
/** What one statement deletes at most, in some 20 ms; the statement timeout is 5 s. */
const ROWS = 2_000
/** How long a mark is kept after its job was added: tickets live for an hour, and clocks differ. */
const MARKS_KEPT_MS = 3 * 3_600_000

/** Deletes at intervals, until closed. Failures are logged and retried in the next round. */
export function startDeletingExpiredSessions(deps: {
  database: Database
  log: Pick<Logger, 'warn'>
  periodMs?: number
}): Rounds {
  const { database, log, periodMs = PERIOD_MS } = deps
  return new Rounds({
    periodMs,
    async round(signal) {
      let deleted: number
      do {
        deleted = 0
        for (const deleteSome of [deleteSessions, deleteMailTokens, deleteUsedTickets, deleteBlocks])
          deleted += await deleteSome(database)
      } while (deleted > 0 && !signal.aborted)
    },
    onFailure: (error) => log.warn({ err: error }, 'expired sessions could not be deleted'),
  })
}

/** Deletes sessions a day after their expiry: a session's id refuses a replay of its ticket. */
function deleteSessions(database: Database): Promise<number> {
  return database.$executeRaw`
    DELETE FROM sessions WHERE id = ANY (ARRAY(
      SELECT id FROM sessions WHERE expires_at < now() - interval '1 day' ORDER BY expires_at LIMIT ${ROWS} FOR UPDATE SKIP LOCKED
    ))`
}

/** Deletes tokens of mails a day after their expiry, as above, and returns their number. */
function deleteMailTokens(database: Database): Promise<number> {
  return database.$executeRaw`
    DELETE FROM mail_tokens WHERE id = ANY (ARRAY(
      SELECT id FROM mail_tokens WHERE expires_at < now() - interval '1 day' ORDER BY expires_at LIMIT ${ROWS}
      FOR UPDATE SKIP LOCKED
    ))`
}

/** Deletes marks of used tickets, by the time in their jobs' ids, and returns their number. */
function deleteUsedTickets(database: Database): Promise<number> {
  return database.$executeRaw`
    DELETE FROM used_tickets WHERE job_id = ANY (ARRAY(
      SELECT job_id FROM used_tickets WHERE job_id < ${firstIdAt(Date.now() - MARKS_KEPT_MS)}::uuid ORDER BY job_id LIMIT ${ROWS}
      FOR UPDATE SKIP LOCKED
    ))`
}

function deleteBlocks(database: Database): Promise<number> {
  return database.$executeRaw`DELETE FROM blocks WHERE until < now()`
}
