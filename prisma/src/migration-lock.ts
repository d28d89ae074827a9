// The migration lock behind a connection pooler: one migrator at a time.
import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import { connectForScripts } from './connection.js'

const LOCK_OF_SESSION = 'SELECT pg_advisory_lock(72707369)'
const LOCK_OF_TRANSACTION = 'SELECT pg_advisory_xact_lock(72707369)'

/**
 * Replaces the schema engine's session lock by a transaction's lock. The engine never unlocks: behind a pooler the server session
 * outlives the migrator, and the next one, in another session, would wait for it. Returns a function that releases the lock.
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
    // Closing the connection ends the transaction, even while it waits for the lock.
    await transaction.rollback()
    await holder.dispose()
  }
}
