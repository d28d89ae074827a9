// The one constructor of the database client.
import { connectionTo, isPooled } from './connection.js'
import { Driver, type PoolUse } from './driver.js'
import { type Prisma, PrismaClient } from './generated/client.js'
import { statementNames } from './statement-names.js'

export type { PoolUse } from './driver.js'
export { isDatabaseUnavailable } from './errors.js'
export { Prisma, type RefreshToken, type Session, type User } from './generated/client.js'

/** The typed client. `$disconnect()` closes every connection, after the queries in hand; a query after that opens one again. */
export type Database = PrismaClient

export interface DatabaseOptions {
  /** `postgresql://...`; with `?pgbouncer=true` no statement is prepared, and the server is told no time limit. */
  url: string
  /** Connections held at most. A query takes about a millisecond, so a few carry thousands a second. */
  poolSize: number
  /** How long a query may wait for a connection, new or handed back. [2000: a login has other things to wait for] */
  connectionTimeoutMs?: number
  /** How long one statement may run before the server ends it. [5000: every query here is by key] */
  statementTimeoutMs?: number
}

/** Opens a client; the first query connects. The caller closes it with `$disconnect()`. */
export function connectDatabase(options: DatabaseOptions): Database {
  const { url, poolSize, connectionTimeoutMs = 2_000, statementTimeoutMs = 5_000 } = options
  const connection = connectionTo(url)
  const pooled = isPooled(url)
  const driver = new Driver(
    {
      ...connection,
      application_name: 'spillway',
      max: poolSize,
      connectionTimeoutMillis: connectionTimeoutMs,
      statement_timeout: !pooled && statementTimeoutMs,
      // The same on this side, for a server that is frozen, cut off or told no limit; later, so that its word comes first.
      query_timeout: statementTimeoutMs + 1_000,
      keepAlive: true,
    },
    pooled ? {} : { statementNameGenerator: statementNames() },
  )
  // Minimal: the default would paste the lines of source around the call into every log.
  const database = new PrismaClient({ adapter: driver, errorFormat: 'minimal' })
  drivers.set(database, driver)
  return database
}

const drivers = new WeakMap<Database, Driver>()

/**
 * The rows of a statement that is run past Prisma's client, on the same connections and with the same errors. For what every login
 * asks: the client takes 0.05 to 0.15 ms of processor time more for each, a sixth of what a login takes a gateway
 * (`pnpm load idle`, `pnpm load scale-out`). What `Row` says of columns and types is not checked.
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

/** How the connections of a client that was opened here are used at this moment. */
export function poolUse(database: Database): PoolUse {
  return drivers.get(database)?.use() ?? { busy: 0, idle: 0, waiting: 0 }
}
