/** Periodically deletes expired sessions, tokens of mails, marks of used tickets, and blocks. */

import type { Logger } from '@spillway/common/log'
import { type Database, Prisma } from '@spillway/prisma'
import { firstIdAt } from '@spillway/queue/wire/id'
import { Rounds } from '../rounds.js'

/** The average time between two rounds of a gateway, in milliseconds. */
const PERIOD_MS = 5 * 60_000
/** The most rows that one statement deletes, in about 20 ms. The statement timeout is 5 s. */
const ROWS = 2_000
/** How long a mark outlives the start of its job: tickets live for an hour; clocks differ. */
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
        for (const statement of statements()) deleted += await database.$executeRaw(statement)
      } while (deleted > 0 && !signal.aborted)
    },
    onFailure: (error) => log.warn({ err: error }, 'expired sessions could not be deleted'),
  })
}

/** Deleted a day after their expiry: a session's id refuses a replay of its ticket. */
function statements(): Prisma.Sql[] {
  const some = Prisma.sql`LIMIT ${ROWS} FOR UPDATE SKIP LOCKED`
  return [
    Prisma.sql`DELETE FROM sessions WHERE id = ANY (ARRAY(
      SELECT id FROM sessions WHERE expires_at < now() - interval '1 day' ORDER BY expires_at ${some}))`,
    Prisma.sql`DELETE FROM mail_tokens WHERE id = ANY (ARRAY(
      SELECT id FROM mail_tokens WHERE expires_at < now() - interval '1 day' ORDER BY expires_at ${some}))`,
    // By the time in the ids of their jobs.
    Prisma.sql`DELETE FROM used_tickets WHERE job_id = ANY (ARRAY(
      SELECT job_id FROM used_tickets WHERE job_id < ${firstIdAt(Date.now() - MARKS_KEPT_MS)}::uuid ORDER BY job_id ${some}))`,
    Prisma.sql`DELETE FROM blocks WHERE until < now()`,
  ]
}
