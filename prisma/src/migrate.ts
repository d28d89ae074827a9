// Migrates a database to the newest schema, as `prisma migrate deploy` does, from any working directory.
// As a program: `DATABASE_URL=... node prisma/dist/migrate.js`.
import { realpathSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MigrationList } from '@prisma/schema-engine-wasm'
import { isPooled } from './connection.js'
import { connectOrCreate } from './create-database.js'
import { lockByTransaction } from './migration-lock.js'
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
