// Settings of every connection to PostgreSQL, and the connections for scripts.
import { PrismaPg } from '@prisma/adapter-pg'

interface Connection {
  connectionString: string
  /** Runs on every new connection, before any other query. */
  onConnect?: (client: { query(sql: string): Promise<unknown> }) => Promise<void>
}

/**
 * Validates a PostgreSQL URL and sets the session's time zone to UTC. The driver writes and reads
 * times without their offset: in another zone `now()` in SQL and a `Date` from Node would differ.
 *
 * @throws one sentence without the URL, which contains the password
 */
export function connectionTo(databaseUrl: string): Connection {
  const form = 'postgresql://user:password@host:5432/database'
  if (!URL.canParse(databaseUrl)) throw new Error(`The database URL cannot be read; write it as ${form}.`)
  const url = new URL(databaseUrl)
  if (url.protocol !== 'postgresql:' && url.protocol !== 'postgres:')
    throw new Error(`The database URL starts with ${url.protocol}, but only PostgreSQL will do: ${form}.`)
  // Prisma's own parameters, which the driver would silently ignore.
  const schema = url.searchParams.get('schema')
  if (schema !== null && schema !== 'public')
    throw new Error(`The database URL names the schema "${schema}"; give Spillway a database of its own instead.`)
  url.searchParams.delete('schema')
  url.searchParams.delete('pgbouncer')
  // PgBouncer refuses `options` in the startup packet, but tracks the time zone of each client.
  if (isPooled(databaseUrl))
    return {
      connectionString: url.href,
      onConnect: async (client) => void (await client.query("SET timezone = 'UTC'")),
    }
  const options = url.searchParams.get('options')
  url.searchParams.set('options', options ? `${options} -c timezone=UTC` : '-c timezone=UTC')
  return { connectionString: url.href }
}

/**
 * Whether the URL has Prisma's `?pgbouncer=true`: a pooler assigns each transaction to another
 * server connection. It accepts no settings, and before PgBouncer 1.21 no prepared statements.
 */
export function isPooled(databaseUrl: string): boolean {
  return new URL(databaseUrl).searchParams.get('pgbouncer') === 'true'
}

/** Prisma's adapter, for its errors; `underlyingDriver()` is the pool, which takes scripts. */
export type ScriptConnection = Awaited<ReturnType<PrismaPg['connect']>>

/**
 * Opens connections for scripts of several statements; the caller disposes of them.
 *
 * @throws the driver's error when the database cannot be reached or does not exist
 */
export async function connectForScripts(url: string): Promise<ScriptConnection> {
  const adapter = await new PrismaPg({ ...connectionTo(url), connectionTimeoutMillis: 20_000 }).connect()
  try {
    await adapter.queryRaw({ sql: 'SELECT 1', args: [], argTypes: [] })
    return adapter
  } catch (error) {
    await adapter.dispose()
    throw error
  }
}
