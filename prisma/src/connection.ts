// Pools of connections to PostgreSQL, and the URL that they read.
import { parseServerUrl } from '@spillway/common/server-url'
import pg from 'pg'

/**
 * Opens a pool. Its first query connects. Throws one sentence for an invalid URL.
 *
 * @param currentUrl reads the URL again for each connection: user, password or certificate may be rotated
 */
export function openPool(url: string, options: pg.PoolConfig, currentUrl = () => url): pg.Pool {
  class Client extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super({ ...config, connectionString: connectionTo(currentUrl()).connectionString })
      // The driver leaves a connection open if it fails early, for example without a password.
      this.connection.on('error', () => this.connection.stream.destroy())
    }
  }
  const throughPooler = { ...options, statement_timeout: false as const, onConnect: setFormatOfTimes }
  const pool = new pg.Pool({ keepAlive: true, ...(connectionTo(url).isPooled ? throughPooler : options), Client })
  // The next query replaces an idle connection that has ended.
  pool.on('error', () => undefined)
  // While a query hangs, Prisma releases the connection without a ROLLBACK: the next user's
  // statements would join that transaction, and never be committed.
  pool.on('release', (_error, client) => {
    if (client.getTransactionStatus() !== 'I') void client.end()
  })
  return pool
}

/** Opens a pool for scripts of several statements, and one connection. The caller ends it. */
export async function connectForScripts(url: string): Promise<pg.Pool> {
  const pool = openPool(url, { connectionTimeoutMillis: 20_000 })
  try {
    await pool.query('SELECT 1')
    return pool
  } catch (error) {
    await pool.end()
    throw error
  }
}

/** PgBouncer refuses `options` in the startup packet. It tracks only these two for each client. */
async function setFormatOfTimes(client: pg.ClientBase): Promise<void> {
  await client.query("SET timezone = 'UTC'; SET datestyle = 'ISO'")
}

/**
 * Takes precedence over the settings of the server, the database and the role. The driver writes
 * and reads times without their offset, statements expect to see what others have committed, and
 * Prisma names the schema `public`. A search of an operator takes one core, not all.
 */
const SESSION_OPTIONS = [
  ...['timezone=UTC', 'datestyle=ISO', 'default_transaction_isolation=read\\ committed', 'search_path=public'],
  ...['lock_timeout=0', 'max_parallel_workers_per_gather=0'],
]
  .map((setting) => `-c ${setting}`)
  .join(' ')

/**
 * Reads a PostgreSQL URL, and adds the settings of each session. Throws one sentence, which never
 * quotes the URL.
 */
export function connectionTo(databaseUrl: string) {
  const { user, password, host, port, path, parameters } = parseDatabaseUrl(databaseUrl)
  // As the driver and Prisma read it.
  const options = (parameters.get('options') ?? '').replaceAll('+', ' ')
  // Parameters of Prisma, which the driver would silently ignore.
  if ((parameters.get('schema') ?? 'public') !== 'public' || /search_path/i.test(options))
    throw new Error('DATABASE_URL names a schema other than public; give Spillway a database of its own instead')
  const url = new URL(`postgresql://localhost/${path}`)
  if (host.startsWith('/')) url.searchParams.set('host', host)
  else url.hostname = host.includes(':') ? `[${host}]` : host
  url.port = String(port)
  url.username = encodeURIComponent(user)
  url.password = encodeURIComponent(password)
  for (const [name, value] of parameters) if (!OTHER_PARAMETERS.includes(name)) url.searchParams.set(name, value)
  /** Transactions change servers, so settings and prepared statements are not used. */
  const isPooled = parameters.get('pgbouncer') === 'true'
  if (!isPooled) url.searchParams.set('options', `${options} ${SESSION_OPTIONS}`.trim())
  /** For log lines: no user and no password. */
  const place = { host, port, database: path }
  return { connectionString: url.href, isPooled, place }
}

/** Parameters of Prisma, and the folder of a Unix socket. */
const OTHER_PARAMETERS = ['schema', 'pgbouncer', 'host']
/** The driver ignores `channel_binding` and `connect_timeout`, which some providers set. */
const DRIVER_PARAMETERS = [
  ...['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'uselibpqcompat'],
  ...['options', 'application_name', 'channel_binding', 'connect_timeout'],
]

const EXAMPLE = 'postgresql://user:password@host:5432/database'

/** The host starts with a slash if it is the folder of a Unix socket. */
function parseDatabaseUrl(url: string) {
  const { hosts, ...parsed } = parseServerUrl(url, {
    setting: 'DATABASE_URL',
    schemes: { postgresql: 5_432, postgres: 5_432 },
    parameters: [...OTHER_PARAMETERS, ...DRIVER_PARAMETERS],
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
