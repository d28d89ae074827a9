// The only constructor of the database client.
import { PrismaPg } from '@prisma/adapter-pg'
import { type Adapter, connectionTo, type Pool } from './connection.js'
import { type Prisma, PrismaClient } from './generated/client.js'

export { connectionTo, placeOf } from './connection.js'
export { databaseProblem, isDatabaseUnavailable, isTaken } from './errors.js'
export { type Gathered, gather } from './gather.js'
export { Prisma, type Session, type User } from './generated/client.js'

export type Database = PrismaClient

export interface DatabaseOptions {
  /** `postgresql://...`; `?pgbouncer=true` turns prepared statements and statement_timeout off. */
  url: string
  /** Reads `url` again for each new connection, for a rotated user or password [it never changes]. */
  currentUrl?: () => string
  /** A query takes about a millisecond: a few connections serve thousands a second. */
  poolSize: number
  /** How long a query may wait for a connection of the pool [2000]. */
  connectionTimeoutMs?: number
  /** The server's time limit of a statement [5000: every query is by key]. */
  statementTimeoutMs?: number
  /** Whether the pool is always full [false]: a spike would wait for connections to open. */
  keepsOpen?: boolean
  /** Called when the pool that `keepsOpen` is full, and with the reason when it cannot be. */
  filled?: (failure?: unknown) => void
}

/**
 * Changes nothing, and fails where a login would: the columns are missing or of other types, the
 * user lacks a right, or the server takes no writes.
 */
export const LOGIN_PROBE = `INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, device, address, family_hash, token_hash)
  SELECT id, id, disabled_at, email_confirmed_at, email, password_hash, '', '' FROM users WHERE credential_version < 0 AND false`

/** Opens a client: the first query connects, `$disconnect()` waits for running queries. */
export function connectDatabase(options: DatabaseOptions): Database {
  const { url, poolSize, keepsOpen = false, connectionTimeoutMs = 2_000, statementTimeoutMs = 5_000 } = options
  const { isPooled, ...connection } = connectionTo(url)
  const driver = new Driver(
    {
      ...connection,
      application_name: 'spillway',
      max: poolSize,
      ...(keepsOpen ? { min: poolSize } : {}),
      connectionTimeoutMillis: connectionTimeoutMs,
      statement_timeout: !isPooled && statementTimeoutMs,
      // For a server that is frozen or has no limit. Longer: the server's error comes first.
      query_timeout: statementTimeoutMs + 1_000,
      keepAlive: true,
    },
    isPooled ? {} : { statementNameGenerator: statementNames() },
    options,
  )
  // The default format would add lines of source code to every logged error.
  const database = new PrismaClient({ adapter: driver, errorFormat: 'minimal' })
  drivers.set(database, driver)
  return database
}

const drivers = new WeakMap<Database, Driver>()

/**
 * Runs a statement on the same connections and with the same errors, past Prisma's client, which
 * would take a sixth of a login's cost at a gateway. Rows are not checked against `Row`.
 */
export async function rawQuery<Row extends Record<string, unknown>>(database: Database, sql: Prisma.Sql) {
  const driver = drivers.get(database)
  if (driver?.pool === undefined) await database.$connect()
  return ((await driver?.query(sql.text, sql.values)) ?? []) as Row[]
}

/** Busy and idle connections, and queries that wait for a connection. */
export function poolUse(database: Database) {
  const { totalCount = 0, idleCount: idle = 0, waitingCount: waiting = 0 } = drivers.get(database)?.pool ?? {}
  return { busy: totalCount - idle, idle, waiting }
}
export type PoolUse = ReturnType<typeof poolUse>

/** The server keeps each prepared statement, and generated SQL could have many variants. */
const NAMED_MAX = 100

/**
 * Names of prepared statements, which save 0.2 ms of PostgreSQL's processor time for a login. To
 * the driver an empty name is no name.
 */
function statementNames(): (query: { sql: string }) => string {
  const names = new Map<string, string>()
  return ({ sql }) => {
    const name = names.get(sql) ?? (names.size < NAMED_MAX ? `spillway-${names.size}` : '')
    if (name !== '') names.set(sql, name)
    return name
  }
}

/** Pause before ended connections are opened again. */
const REOPEN_AFTER_MS = 250

/** Opens connections until a pool has its `min`: now, and whenever one has ended. */
function keepOpen(pool: Pool, filled: DatabaseOptions['filled']): void {
  const { min = 0 } = pool.options
  if (min === 0) return
  let timer: NodeJS.Timeout | undefined
  function fillAfter(ms: number): void {
    clearTimeout(timer)
    if (!pool.ending) timer = setTimeout(() => fill().then(filled, failed), ms).unref()
  }
  function failed(error: unknown): void {
    if (!pool.ending) filled?.(error)
    fillAfter(REOPEN_AFTER_MS)
  }
  /** The pool gives idle connections first. The first opens alone: the database may be away. */
  async function fill(): Promise<void> {
    if (pool.totalCount < min) await pool.query(LOGIN_PROBE)
    const queries = pool.idleCount + min - pool.totalCount
    await Promise.all(Array.from({ length: queries }, () => pool.query('SELECT 1')))
    if (pool.totalCount < min) fillAfter(0)
  }
  pool.on('remove', () => fillAfter(REOPEN_AFTER_MS))
  fillAfter(0)
}

/** The driver converts arguments by their values; PostgreSQL infers types from the statement. */
const ofAnyType = { scalarType: 'unknown', arity: 'scalar' } as const

/** Prisma's adapter for PostgreSQL. SQL can run on its pool directly, past Prisma's client. */
class Driver extends PrismaPg {
  #latest: Adapter | undefined
  readonly #options: DatabaseOptions

  constructor(...[config, driverOptions, options]: [...ConstructorParameters<typeof PrismaPg>, DatabaseOptions]) {
    super(config, driverOptions)
    this.#options = options
  }

  override async connect(): Promise<Adapter> {
    const adapter = await super.connect()
    const pool = adapter.underlyingDriver()
    const { url, currentUrl = () => url, filled } = this.#options
    // The driver reads the options of its pool for each connection that it opens.
    Object.defineProperty(pool.options, 'connectionString', { get: () => connectionTo(currentUrl()).connectionString })
    // While a query hangs, Prisma releases the connection without a ROLLBACK: the next user's
    // statements would join that transaction, and never be committed.
    pool.on('release', (_error, client) => {
      if (client.getTransactionStatus() !== 'I') void client.end()
    })
    keepOpen(pool, filled)
    this.#latest = adapter
    return adapter
  }

  /** Undefined before the first query, and after `$disconnect()` until the next one. */
  get pool(): Pool | undefined {
    const pool = this.#latest?.underlyingDriver()
    return pool?.ending === false ? pool : undefined
  }

  /** The rows of a statement, by column name. The adapter must be connected. */
  async query(sql: string, args: unknown[]): Promise<Record<string, unknown>[] | undefined> {
    const result = await this.#latest?.queryRaw({ sql, args, argTypes: args.map(() => ofAnyType) })
    return result?.rows.map((row) => Object.fromEntries(result.columnNames.map((name, index) => [name, row[index]])))
  }
}
