// Migrates a database to the newest schema, as `prisma migrate deploy` does, from any working directory.
// As a program: `DATABASE_URL=... node prisma/dist/migrate.js`.
import { realpathSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import type { MigrationList } from '@prisma/schema-engine-wasm'
import { connectForScripts, isPooled } from './connection.js'
import { databaseProblem, driverCause, isDatabaseUnavailable } from './errors.js'
import { startSchemaEngine } from './schema-engine.js'

export interface MigrateResult {
  /** Names of the applied migrations, in order; empty when the schema was current. */
  applied: string[]
}

/**
 * Applies pending migrations; creates the database if it does not exist. Safe for concurrent callers: the engine takes an advisory lock
 * (waiting for at most 10 s), and later callers find nothing pending.
 *
 * @param directory migrations in Prisma's layout [this package's own]
 * @throws one sentence when the database cannot be used; the engine's report when a migration fails
 */
export async function migrate(url: string, directory = migrationsDir): Promise<MigrateResult> {
  const migrationsList = await readMigrations(directory)
  const connection = await connectOrCreate(url)
  let unlock: (() => Promise<void>) | undefined
  try {
    if (isPooled(url)) unlock = await lockByTransaction(connection, url)
    const engine = await startSchemaEngine(connection)
    const filters = { externalTables: [], externalEnums: [] }
    const { appliedMigrationNames } = await engine.applyMigrations({ migrationsList, filters })
    return { applied: appliedMigrationNames }
  } catch (error) {
    throw explained(error)
  } finally {
    await connection.dispose()
    await unlock?.()
  }
}

const migrationsDir = fileURLToPath(new URL('../migrations', import.meta.url))

async function readMigrations(baseDir: string): Promise<MigrationList> {
  const entries = await readdir(baseDir, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  const migrations = names.sort().map(async (path) => {
    const value = await readFile(join(baseDir, path, 'migration.sql'), 'utf8')
    return { path, migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value } } }
  })
  const path = 'migration_lock.toml'
  const lockfile = { path, content: await readFile(join(baseDir, path), 'utf8') }
  return { baseDir, lockfile, shadowDbInitScript: '', migrationDirectories: await Promise.all(migrations) }
}

/** The engine's messages end with a backtrace of its own source, which alone contains the name of the migration. */
function explained(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const [report = '', trace = ''] = error.message.split(/\n\s+0: /)
  const failed = /migration_name="([^"]+)"/.exec(trace)?.[1]
  if (!failed) return new Error(report.trim(), { cause: error })
  const retry = `UPDATE _prisma_migrations SET rolled_back_at = now() WHERE migration_name = '${failed}'`
  const reason = report.replace('external connector error\n', '')
  return new Error(`The migration ${failed} failed. ${reason}\nCorrect it, then let it be tried again: ${retry};`, {
    cause: error,
  })
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const url = process.env.DATABASE_URL
  try {
    if (!url) throw new Error('DATABASE_URL is not set; give it as postgresql://user:password@host:5432/database.')
    const { applied } = await migrate(url)
    console.log(applied.length ? `Applied ${applied.join(', ')}.` : 'The database is up to date.')
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}

// The migration lock behind a connection pooler: one migrator at a time.

const LOCK_OF_SESSION = 'SELECT pg_advisory_lock(72707369)'
const LOCK_OF_TRANSACTION = 'SELECT pg_advisory_xact_lock(72707369)'

/**
 * Replaces the schema engine's session lock by a transaction's lock. The engine never unlocks: behind a pooler the server session
 * outlives the migrator, and the next one, in another session, would wait for it. Returns a function that releases the lock.
 */
async function lockByTransaction(connection: SqlDriverAdapter, url: string): Promise<() => Promise<void>> {
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

/**
 * The caller disposes of the connection.
 *
 * @throws one sentence, without the password, when the database can neither be used nor created
 */
export async function connectOrCreate(url: string): Promise<SqlDriverAdapter> {
  try {
    return await connectForScripts(url)
  } catch (error) {
    if (driverCause(error)?.kind !== 'DatabaseDoesNotExist') throw unusable(url, error)
  }
  try {
    await createDatabase(url)
    return await connectForScripts(url)
  } catch (error) {
    throw unusable(url, error)
  }
}

async function createDatabase(url: string): Promise<void> {
  const maintenance = new URL(url)
  const name = decodeURIComponent(maintenance.pathname.slice(1))
  maintenance.pathname = '/postgres'
  const connection = await connectForScripts(maintenance.href)
  try {
    await connection.executeScript(`CREATE DATABASE "${name.replaceAll('"', '""')}"`)
  } catch (error) {
    // Another process created it: PostgreSQL reports that by the name, or as a conflict in its catalogue.
    const kind = driverCause(error)?.kind
    if (kind !== 'DatabaseAlreadyExists' && kind !== 'UniqueConstraintViolation') throw error
  } finally {
    await connection.dispose()
  }
}

function unusable(url: string, error: unknown): unknown {
  if (!isDatabaseUnavailable(error) && !driverCause(error)) return error
  const { host, pathname } = new URL(url)
  return new Error(`The database ${pathname.slice(1)} at ${host} cannot be used: ${databaseProblem(error)}.`, {
    cause: error,
  })
}
