// Queries that wait for another transaction to end: tests hold them there on purpose.
import type { Database } from '@spillway/prisma'

/** Whether a query to this database waits for a lock now. */
export async function locksAwaited(database: Database): Promise<boolean> {
  const waiting = await database.$queryRaw<unknown[]>`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return waiting.length > 0
}
