// Settings of every connection to PostgreSQL, and the connections for scripts.
import { PrismaPg } from '@prisma/adapter-pg'
import { parseServerUrl } from '@spillway/common/server-url'
import pg from 'pg'

/** Prisma's adapter, for its errors, and the pool below it, which takes scripts. */
export type Adapter = Awaited<ReturnType<PrismaPg['connect']>>
export type Pool = ReturnType<Adapter['underlyingDriver']>

/** The driver leaves a connection open that fails before it is ready, as without a password. */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    this.connection.on('error', () => this.connection.stream.destroy())
  }
}

/**
 * Reads a PostgreSQL URL, and sets the session's time zone to UTC: the driver writes and reads
 * times without their offset. Throws one sentence, which never quotes the URL.
 *
 * @param database another database on that server [the URL's]
 */
export function connectionTo(databaseUrl: string, database?: string) {
  const { user, password, host, port, path, parameters } = parseDatabaseUrl(databaseUrl)
  // Prisma's own parameters, which the driver would silently ignore.
  if ((parameters.get('schema') ?? 'public') !== 'public')
    throw new Error('DATABASE_URL names a schema other than public; give Spillway a database of its own instead')
  const url = new URL(`postgresql://localhost/${database ?? path}`)
  if (host.startsWith('/')) url.searchParams.set('host', host)
  else url.hostname = host.includes(':') ? `[${host}]` : host
  url.port = String(port)
  url.username = encodeURIComponent(user)
  url.password = encodeURIComponent(password)
  for (const [name, value] of parameters) if (!OTHER_PARAMETERS.includes(name)) url.searchParams.set(name, value)
  /** Transactions change servers: no settings, no prepared statements. */
  const isPooled = parameters.get('pgbouncer') === 'true'
  // PgBouncer refuses `options` in the startup packet, but tracks the time zone of each client.
  const onConnect = async (client: Pick<Pool, 'query'>) => void (await client.query("SET timezone = 'UTC'"))
  if (isPooled) return { connectionString: url.href, isPooled, Client, onConnect }
  url.searchParams.set('options', `${url.searchParams.get('options') ?? ''} -c timezone=UTC`.trim())
  return { connectionString: url.href, isPooled, Client }
}

/** Prisma's own; and the folder of a Unix socket. */
const OTHER_PARAMETERS = ['schema', 'pgbouncer', 'host']
/** The driver ignores `channel_binding` and `connect_timeout`, which URLs of hosters have. */
const DRIVER_PARAMETERS = [
  ...['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'uselibpqcompat'],
  ...['options', 'application_name', 'channel_binding', 'connect_timeout'],
]

const EXAMPLE = 'postgresql://user:password@host:5432/database'

/** The host begins with a slash where it is the folder of a Unix socket. */
export function parseDatabaseUrl(url: string) {
  const { hosts, ...parsed } = parseServerUrl(url, {
    setting: 'DATABASE_URL',
    schemes: { postgresql: 5_432, postgres: 5_432 },
    parameters: [...OTHER_PARAMETERS, ...DRIVER_PARAMETERS],
    plusIsBlank: true,
    hostless: ['postgresql', 'postgres'],
    example: EXAMPLE,
  })
  const [{ host: named, port }, ...others] = hosts
  if (others.length > 0)
    throw new Error(
      'DATABASE_URL must name one host: for several servers, the address or pooler that leads to the primary',
    )
  const host = parsed.parameters.get('host') ?? named
  if (host !== named && !host.startsWith('/'))
    throw new Error(
      'DATABASE_URL takes host=/run/postgresql, the folder of a Unix socket; the host of a server stands before the path',
    )
  if (host === '') throw new Error(`DATABASE_URL names no host: ${EXAMPLE}`)
  if (parsed.path === '') throw new Error(`DATABASE_URL names no database: ${EXAMPLE}`)
  return { ...parsed, host, port }
}

/** Where the database is, for log lines: no user and no password. */
export function placeOf(url: string): { host: string; port: number; database: string } {
  const { host, port, path } = parseDatabaseUrl(url)
  return { host, port, database: path }
}

/** Opens connections for scripts of several statements; the caller disposes of them. */
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
