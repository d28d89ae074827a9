// The one constructor of the database client.
import { createHash } from 'node:crypto'
import { PrismaPg } from '@prisma/adapter-pg'
import { connectionTo, isPooled } from './connection.js'
import { type Prisma, PrismaClient } from './generated/client.js'

export { databaseProblem, isDatabaseUnavailable, isTaken } from './errors.js'
export { type Gathered, gather } from './gather.js'
export { Prisma, type Session, type User } from './generated/client.js'

/** `$disconnect()` waits for running queries and closes all connections; later queries reconnect. */
export type Database = PrismaClient

export interface DatabaseOptions {
  /** `postgresql://...`; with `?pgbouncer=true` no statements are prepared, and no statement_timeout is set. */
  url: string
  /** The size of the pool. A query takes about a millisecond, so a few connections serve thousands a second. */
  poolSize: number
  /** How long a query may wait for a connection of the pool [2000]. */
  connectionTimeoutMs?: number
  /** The server's time limit for one statement [5000: every query here is by key]. */
  statementTimeoutMs?: number
  /**
   * Whether the whole pool is open from the first `$connect()` on, and opened again after an outage
   * [false: connections are opened on demand, and idle ones end after ten seconds]. A connection
   * that a spike opens may take longer than a query waits for it.
   */
  keepsOpen?: boolean
}

/** Opens a client; the first query connects. The caller closes it with `$disconnect()`. */
export function connectDatabase(options: DatabaseOptions): Database {
  const { url, poolSize, connectionTimeoutMs = 2_000, statementTimeoutMs = 5_000, keepsOpen = false } = options
  const connection = connectionTo(url)
  const pooled = isPooled(url)
  const driver = new Driver(
    {
      ...connection,
      application_name: 'spillway',
      max: poolSize,
      ...(keepsOpen ? { min: poolSize } : {}),
      connectionTimeoutMillis: connectionTimeoutMs,
      statement_timeout: !pooled && statementTimeoutMs,
      // The client's limit, for a server that is frozen, unreachable or without a limit. Longer, so
      // that the server's error comes first.
      query_timeout: statementTimeoutMs + 1_000,
      keepAlive: true,
    },
    pooled ? {} : { statementNameGenerator: statementNames() },
  )
  // The default format would add lines of source code to every logged error.
  const database = new PrismaClient({ adapter: driver, errorFormat: 'minimal' })
  drivers.set(database, driver)
  return database
}

const drivers = new WeakMap<Database, Driver>()

/**
 * Runs a statement past Prisma's client, on the same connections and with the same errors. For the
 * queries of every login: the client takes 0.05 to 0.15 ms of processor time more for each, a sixth
 * of a login's cost at a gateway. The rows are not checked against `Row`.
 */
export async function rawQuery<Row extends Record<string, unknown>>(
  database: Database,
  sql: Prisma.Sql,
): Promise<Row[]> {
  const ask = () => drivers.get(database)?.query(sql.text, sql.values)
  let rows = await ask()
  if (rows === undefined) {
    await database.$connect()
    rows = await ask()
  }
  return (rows ?? []) as Row[]
}

/** The current use of a client's connection pool. */
export function poolUse(database: Database): PoolUse {
  return drivers.get(database)?.use() ?? { busy: 0, idle: 0, waiting: 0 }
}

// Names for prepared statements, so that PostgreSQL parses and plans each statement once for a
// connection. This saves 0.2 ms of its processor time for a login.

/** The limit of names: the server keeps each prepared statement, and generated SQL could have many variants. */
const NAMED_MAX = 100

/** Returns a name for each SQL text, the same for every connection; empty beyond the limit. */
function statementNames(): (query: { sql: string }) => string {
  const names = new Map<string, string>()
  return ({ sql }) => {
    const known = names.get(sql)
    if (known !== undefined) return known
    // To the driver an empty name is no name.
    if (names.size >= NAMED_MAX) return ''
    const name = createHash('sha256').update(sql).digest('base64url')
    names.set(sql, name)
    return name
  }
}

/** Pause before connections that have ended are opened again, in milliseconds. */
const REOPEN_AFTER_MS = 250

/** Opens connections until a pool has its `min`: now, and whenever one has ended. Ends with the pool. */
function keepOpen(pool: Pool): void {
  const { min = 0 } = pool.options
  if (min === 0) return
  let timer: NodeJS.Timeout | undefined
  function fillAfter(ms: number): void {
    clearTimeout(timer)
    const again = () => fillAfter(REOPEN_AFTER_MS)
    if (!pool.ending) timer = setTimeout(() => fill().catch(again), ms).unref()
  }
  /**
   * The pool gives idle connections before it opens new ones. The first goes alone: while the
   * database is away, one attempt is enough.
   */
  async function fill(): Promise<void> {
    const queries = pool.totalCount === 0 ? 1 : pool.idleCount + min - pool.totalCount
    await Promise.all(Array.from({ length: queries }, () => pool.query('SELECT 1')))
    if (pool.totalCount < min) fillAfter(0)
  }
  pool.on('remove', () => fillAfter(REOPEN_AFTER_MS))
  fillAfter(0)
}

export interface PoolUse {
  /** Connections that run a query, and idle ones. */
  busy: number
  idle: number
  /** Queries that wait for a connection. */
  waiting: number
}

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>
type Pool = ReturnType<Adapter['underlyingDriver']>

/** The type of every argument: the driver converts by the value, and PostgreSQL infers the type from the statement. */
const ofAnyType = { scalarType: 'unknown', arity: 'scalar' } as const

/** Prisma's adapter for PostgreSQL. Its pool can be observed, and SQL can run on it directly, past Prisma's client. */
class Driver extends PrismaPg {
  #latest: Adapter | undefined

  override async connect(): Promise<Adapter> {
    const adapter = await super.connect()
    // While a query hangs, Prisma's ROLLBACK stays unsent behind it, and Prisma releases the
    // connection all the same: the next user's statements would join that transaction, and never be
    // committed.
    adapter.underlyingDriver().on('release', (_error, client) => {
      if (client.getTransactionStatus() !== 'I') void client.end()
    })
    keepOpen(adapter.underlyingDriver())
    this.#latest = adapter
    return adapter
  }

  /** Undefined before the first query, and after `$disconnect()` until the next one. */
  get #open(): Adapter | undefined {
    return this.#latest?.underlyingDriver().ending === false ? this.#latest : undefined
  }

  /** The rows of a statement, by column name; undefined when the adapter is not connected. */
  async query(sql: string, args: unknown[]): Promise<Record<string, unknown>[] | undefined> {
    const result = await this.#open?.queryRaw({ sql, args, argTypes: args.map(() => ofAnyType) })
    return result?.rows.map((row) => Object.fromEntries(result.columnNames.map((name, index) => [name, row[index]])))
  }

  use(): PoolUse {
    const { totalCount = 0, idleCount = 0, waitingCount = 0 } = this.#open?.underlyingDriver() ?? {}
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }
}
