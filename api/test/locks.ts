// Queries that wait for another transaction to end: tests hold them there on purpose.
import type { Database } from '@spillway/prisma'

/** Whether queries to this database wait for a lock now, at least so many. */
export async function locksAwaited(database: Database, count = 1): Promise<boolean> {
  const waiting = await database.$queryRaw<unknown[]>`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return waiting.length >= count
}
