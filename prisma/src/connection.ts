// Settings of every connection to PostgreSQL, and the connections for scripts.
import { PrismaPg } from '@prisma/adapter-pg'
import { parseServerUrl } from '@spillway/common/server-url'

/** Prisma's adapter, for its errors, and the pool below it, which takes scripts. */
export type Adapter = Awaited<ReturnType<PrismaPg['connect']>>
export type Pool = ReturnType<Adapter['underlyingDriver']>

/**
 * Reads a PostgreSQL URL, and sets the session's time zone to UTC. The driver writes and reads
 * times without their offset: in another zone `now()` in SQL and a `Date` from Node would differ.
 *
 * @param database the name of another database on that server [the name in the URL]
 * @throws one sentence, which never quotes the URL
 */
export function connectionTo(databaseUrl: string, database?: string) {
  const { user, password, hosts, path, parameters } = parseDatabaseUrl(databaseUrl)
  // Prisma's own parameters, which the driver would silently ignore.
  if ((parameters.get('schema') ?? 'public') !== 'public')
    throw new Error('DATABASE_URL names a schema other than public; give Spillway a database of its own instead')
  const url = new URL(`postgresql://host/${database ?? path}`)
  const [{ host, port }, ...others] = hosts
  if (others.length > 0) throw new Error('DATABASE_URL must name one host')
  url.host = `${host.includes(':') ? `[${host}]` : host}:${port}`
  url.username = encodeURIComponent(user)
  url.password = encodeURIComponent(password)
  for (const [name, value] of parameters) if (!PRISMA_PARAMETERS.includes(name)) url.searchParams.set(name, value)
  /** Transactions change servers: no settings, no prepared statements. */
  const isPooled = parameters.get('pgbouncer') === 'true'
  // PgBouncer refuses `options` in the startup packet, but tracks the time zone of each client.
  const onConnect = async (client: { query(sql: string): Promise<unknown> }) =>
    void (await client.query("SET timezone = 'UTC'"))
  if (isPooled) return { connectionString: url.href, isPooled, onConnect }
  url.searchParams.set('options', `${url.searchParams.get('options') ?? ''} -c timezone=UTC`.trim())
  return { connectionString: url.href, isPooled }
}

const PRISMA_PARAMETERS = ['schema', 'pgbouncer']
/** The driver ignores `channel_binding` and `connect_timeout`, which URLs of hosters have. */
const DRIVER_PARAMETERS = [
  ...['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'uselibpqcompat'],
  ...['options', 'application_name', 'channel_binding', 'connect_timeout'],
]

export function parseDatabaseUrl(url: string) {
  return parseServerUrl(url, {
    setting: 'DATABASE_URL',
    schemes: { postgresql: 5_432, postgres: 5_432 },
    parameters: [...PRISMA_PARAMETERS, ...DRIVER_PARAMETERS],
    plusIsBlank: true,
    example: 'postgresql://user:password@host:5432/database',
  })
}

/**
 * Opens connections for scripts of several statements; the caller disposes of them.
 *
 * @throws the driver's error when the database cannot be reached or does not exist
 */
export async function connectForScripts(url: string, database?: string): Promise<Adapter> {
  const adapter = await new PrismaPg({ ...connectionTo(url, database), connectionTimeoutMillis: 20_000 }).connect()
  try {
    await adapter.queryRaw({ sql: 'SELECT 1', args: [], argTypes: [] })
    return adapter
  } catch (error) {
    await adapter.dispose()
    throw error
  }
}
