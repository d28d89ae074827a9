// The only place that creates database clients.
import { PrismaPg } from '@prisma/adapter-pg'
import { connectionTo, openPool } from './connection.js'
import { type Prisma, PrismaClient } from './generated/client.js'

export { connectionTo } from './connection.js'
export {
  againIfLost,
  databaseProblem,
  isDatabaseUnavailable,
  isTaken,
  isValueRefused,
  mayHaveHappened,
} from './errors.js'
export { type Gathered, gather } from './gather.js'
export { Prisma, type Session, type User } from './generated/client.js'

export type Database = PrismaClient

export interface DatabaseOptions {
  /** `postgresql://...`; `?pgbouncer=true` turns prepared statements and statement_timeout off. */
  url: string
  /** Reads `url` again for each new connection, for a rotated password [it never changes]. */
  currentUrl?: () => string
  /** A query takes about a millisecond: a few connections serve thousands a second. */
  poolSize: number
  /** How long a query may wait for a connection of the pool, in milliseconds [2000]. */
  connectionTimeoutMs?: number
  /**
   * Whether statements are prepared [true]. Unprepared ones are planned for their values: a search
   * that is cheap for one account may read a million rows for another.
   */
  preparesStatements?: boolean
  /** The server's time limit of a statement, in milliseconds [5000: every query is by key]. */
  statementTimeoutMs?: number
}

/**
 * Changes nothing, and fails if a login would fail: columns are missing or have other types, the
 * user lacks a right, or the server is read-only.
 */
export const LOGIN_PROBE = `INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, device, address, family_hash, token_hash)
  SELECT id, id, disabled_at, email_confirmed_at, email, password_hash, '', '' FROM users WHERE credential_version < 0 AND false`

/** Opens a client. The first query connects, and `$disconnect()` waits for running queries. */
export function connectDatabase(options: DatabaseOptions): Database {
  const { url, currentUrl, poolSize, preparesStatements = true } = options
  const { connectionTimeoutMs = 2_000, statementTimeoutMs = 5_000 } = options
  const settings = {
    application_name: 'spillway',
    max: poolSize,
    // Open connections stay open, because a spike would wait for new ones.
    min: poolSize,
    connectionTimeoutMillis: connectionTimeoutMs,
    statement_timeout: statementTimeoutMs,
    // For a server that hangs or has no limit. Longer, so that the server's error comes first.
    query_timeout: statementTimeoutMs + 1_000,
  }
  const pool = openPool(url, settings, currentUrl)
  const names = connectionTo(url).isPooled || !preparesStatements ? {} : { statementNameGenerator: statementNames() }
  const driver = new PrismaPg(pool, { disposeExternalPool: true, ...names })
  // The default format would add lines of source code to every logged error.
  const database = new PrismaClient({ adapter: driver, errorFormat: 'minimal' })
  drivers.set(database, { pool, driver })
  return database
}

interface OpenedDriver {
  pool: ReturnType<typeof openPool>
  driver: PrismaPg
  /** The adapter of raw queries. It uses the same pool as the client. */
  adapter?: ReturnType<PrismaPg['connect']>
}

const drivers = new WeakMap<Database, OpenedDriver>()

function driverOf(database: Database): OpenedDriver {
  const opened = drivers.get(database)
  if (opened === undefined) throw new TypeError('connectDatabase() did not make this client')
  return opened
}

/** Opens all connections of the pool. Rejects with the reason why logins would fail. */
export async function fillPool(database: Database): Promise<void> {
  // Only a connected client can be disconnected.
  await database.$connect()
  const { pool } = driverOf(database)
  // One query first, because the database may be away.
  await pool.query(LOGIN_PROBE)
  await Promise.all(Array.from({ length: pool.options.max }, () => pool.query('SELECT 1')))
}

/** The driver converts arguments by their values; PostgreSQL infers types from the statement. */
const ofAnyType = { scalarType: 'unknown', arity: 'scalar' } as const

/**
 * Runs a statement on the same connections and with the same errors, but without Prisma's client,
 * which would take a sixth of the gateway's cost of a login. Rows are not checked against `Row`.
 */
export async function rawQuery<Row extends Record<string, unknown>>(database: Database, { text, values }: Prisma.Sql) {
  const opened = driverOf(database)
  opened.adapter ??= database.$connect().then(() => opened.driver.connect())
  const adapter = await opened.adapter
  const result = await adapter.queryRaw({ sql: text, args: values, argTypes: values.map(() => ofAnyType) })
  const toRow = (row: unknown[]) => Object.fromEntries(result.columnNames.map((name, index) => [name, row[index]]))
  return result.rows.map(toRow) as Row[]
}

/** Busy and idle connections, and queries that wait for a connection. */
export function poolUse(database: Database) {
  const { totalCount, idleCount: idle, waitingCount: waiting } = driverOf(database).pool
  return { busy: totalCount - idle, idle, waiting }
}

/** The server keeps every prepared statement, and generated SQL could have many variants. */
const NAMED_MAX = 100

/**
 * Names of prepared statements, which save 0.2 ms of PostgreSQL's processor time per login. The
 * driver treats an empty name as no name.
 */
function statementNames(): (query: { sql: string }) => string {
  const names = new Map<string, string>()
  return ({ sql }) => {
    const name = names.get(sql) ?? (names.size < NAMED_MAX ? `spillway-${names.size}` : '')
    if (name !== '') names.set(sql, name)
    return name
  }
}
