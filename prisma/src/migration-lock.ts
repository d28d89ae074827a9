// The lock that lets one migrator work at a time, where a pooler stands between it and the server.
import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import { connectForScripts } from './connection.js'

const LOCK_OF_SESSION = 'SELECT pg_advisory_lock(72707369)'
const LOCK_OF_TRANSACTION = 'SELECT pg_advisory_xact_lock(72707369)'

/**
 * Has a transaction take the schema engine's lock in its place. The engine locks for its session and never unlocks: a pooler's
 * session goes on without us, and the next migrator, given another, would wait for it. Returns what lets go of the lock.
 */
export async function lockByTransaction(connection: SqlDriverAdapter, url: string): Promise<() => Promise<void>> {
  const holder = await connectForScripts(url)
  const transaction = await holder.startTransaction().catch(async (error: unknown) => {
    await holder.dispose()
    throw error
  })
  const executeRaw = connection.executeRaw.bind(connection)
  connection.executeRaw = (query) =>
    query.sql === LOCK_OF_SESSION ? transaction.executeRaw({ ...query, sql: LOCK_OF_TRANSACTION }) : executeRaw(query)
  return async () => {
    // Gives back the connection, whose end is that of the transaction, also while it waits for the lock.
    await transaction.rollback()
    await holder.dispose()
  }
}
