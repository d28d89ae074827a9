// What every connection to PostgreSQL has in common, and the single one over which scripts run.
import { PrismaPg } from '@prisma/adapter-pg'
import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'

export interface Connection {
  connectionString: string
  /** Run on every new connection, before anything else is. */
  onConnect?: (client: { query(sql: string): Promise<unknown> }) => Promise<void>
}

/**
 * Checks a PostgreSQL URL and adds what Spillway relies on: the session's time zone is UTC. The driver writes and reads
 * times without their offset, so in any other zone `now()` in SQL and a `Date` from Node would disagree.
 *
 * @throws one sentence, without the URL (it carries the password), when it is no PostgreSQL URL or names a schema
 */
export function connectionTo(databaseUrl: string): Connection {
  if (!URL.canParse(databaseUrl)) throw new Error(`The database URL cannot be read; write it as ${form}.`)
  const url = new URL(databaseUrl)
  if (url.protocol !== 'postgresql:' && url.protocol !== 'postgres:') {
    throw new Error(`The database URL starts with ${url.protocol}, but only PostgreSQL will do: ${form}.`)
  }
  // Prisma's own parameters, which the driver would ignore without a word.
  const schema = url.searchParams.get('schema')
  if (schema !== null && schema !== 'public') {
    throw new Error(`The database URL names the schema "${schema}"; give Spillway a database of its own instead.`)
  }
  url.searchParams.delete('schema')
  url.searchParams.delete('pgbouncer')
  // PgBouncer refuses settings in the packet that opens a connection, but keeps the time zone of each client.
  if (isPooled(databaseUrl)) {
    return {
      connectionString: url.href,
      onConnect: async (client) => void (await client.query("SET timezone = 'UTC'")),
    }
  }
  const options = url.searchParams.get('options')
  url.searchParams.set('options', options ? `${options} -c timezone=UTC` : '-c timezone=UTC')
  return { connectionString: url.href }
}

/**
 * Whether the URL says, in Prisma's way (`?pgbouncer=true`), that connections go through a pooler that hands each transaction
 * to another server connection: it takes no settings, and before PgBouncer 1.21 knows nothing of prepared statements.
 */
export function isPooled(databaseUrl: string): boolean {
  return new URL(databaseUrl).searchParams.get('pgbouncer') === 'true'
}

const form = 'postgresql://user:password@host:5432/database'

/**
 * Connects once, for scripts of several statements; the caller disposes of it.
 *
 * @throws the driver's error when the database cannot be reached or does not exist
 */
export async function connectForScripts(url: string): Promise<SqlDriverAdapter> {
  // A pool of one: an advisory lock belongs to a session, which must be the one that does all the rest.
  const pool = { ...connectionTo(url), max: 1, connectionTimeoutMillis: 5_000 }
  const adapter: SqlDriverAdapter = await new PrismaPg(pool).connect()
  // The driver would cut a script at every semicolon, those in comments and function bodies too. Sent whole it is also one
  // transaction, so a script that fails leaves nothing behind.
  adapter.executeScript = async (sql) => void (await adapter.executeRaw({ sql, args: [], argTypes: [] }))
  try {
    await adapter.executeScript('SELECT 1')
    return adapter
  } catch (error) {
    await adapter.dispose()
    throw error
  }
}
