// Migrates a database to the newest schema, from any working directory. It keeps the same record as
// `prisma migrate deploy`. As a program: `DATABASE_URL=... node prisma/dist/migrate.js`.
import { createHash, randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readSecret } from '@spillway/common/secrets'
import type { Pool } from 'pg'
import { connectForScripts, connectionTo } from './connection.js'
import { databaseProblem, lacksRight } from './errors.js'

const migrationsDir = fileURLToPath(new URL('../migrations', import.meta.url))
/** The number of Prisma's lock, so that Prisma's command line waits for this program. */
const LOCK = 72_707_369
const LOCK_TIMEOUT = '60s'
/** Time limits that the role may have for gateways, off for a transaction. Servers before 17 lack the last one. */
const NO_TIME_LIMITS = `SELECT set_config(name, '0', true) FROM pg_settings
  WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

/** The same statement as Prisma's. */
const RECORD_TABLE = `CREATE TABLE _prisma_migrations (id VARCHAR(36) PRIMARY KEY NOT NULL, checksum VARCHAR(64) NOT NULL,
  finished_at TIMESTAMPTZ, migration_name VARCHAR(255) NOT NULL, logs TEXT, rolled_back_at TIMESTAMPTZ,
  started_at TIMESTAMPTZ NOT NULL DEFAULT now(), applied_steps_count INTEGER NOT NULL DEFAULT 0)`

/**
 * Applies pending migrations and returns their names.
 * Concurrent callers wait for each other. A migration and its record are one transaction. Throws a
 * sentence if the database cannot be used, or one that names the failed migration and the reason.
 */
export async function migrate(url: string, directory = migrationsDir): Promise<{ applied: string[] }> {
  // An invalid URL has a sentence of its own.
  const { place } = connectionTo(url)
  const unusable = (error: unknown): Error => {
    const message = `The database ${place.database} at ${place.host}:${place.port} cannot be used: ${databaseProblem(error)}.`
    return new Error(message, { cause: error })
  }
  const pool = await connectForScripts(url).catch((error: unknown) => {
    throw unusable(error)
  })
  const lock = await pool.connect()
  // Without a listener, the end of the connection would end the process, with a stack. The next query fails.
  lock.on('error', () => undefined)
  try {
    // A transaction's lock: with a pooler, a session's lock would outlive this process.
    await lock.query(
      `BEGIN; ${NO_TIME_LIMITS}; SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'; SELECT pg_advisory_xact_lock(${LOCK})`,
    )
    const done = await recorded(pool, place.database)
    const names = (await readdir(directory)).filter((name) => name !== 'migration_lock.toml').sort()
    if (done.size > 0 && !names.some((name) => done.has(name)))
      throw new Error(
        `The database ${place.database} has the migrations of something else; give Spillway a database of its own.`,
      )
    const applied = names.filter((name) => !done.has(name))
    for (const name of applied) await apply(pool, name, await readFile(join(directory, name, 'migration.sql'), 'utf8'))
    return { applied }
  } catch (error) {
    throw lacksRight(error) ? unusable(error) : error
  } finally {
    await lock.query('ROLLBACK').catch(() => undefined)
    lock.release()
    await pool.end()
  }
}

/** The names of the migrations that were applied. Creates their table in an empty database. */
async function recorded(pool: Pool, database: string): Promise<Set<string>> {
  const { rows: schemas } = await pool.query(
    `SELECT current_schema() AS first, current_setting('server_encoding') AS encoding`,
  )
  if (schemas[0].first !== 'public')
    throw new Error(
      `The database ${database} cannot be used: its user has no right on the schema public, or its search_path begins with another schema; grant it ALL ON SCHEMA public, and ALTER ROLE … SET search_path = public.`,
    )
  const { rows: tables } = await pool.query(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename = '_prisma_migrations' DESC, 1`,
  )
  // SQL_ASCII keeps UTF-8 as it is. Other encodings lack characters of addresses and reasons.
  if (tables.length === 0 && !['UTF8', 'SQL_ASCII'].includes(schemas[0].encoding))
    throw new Error(
      `The database ${database} cannot be used: its encoding is ${schemas[0].encoding}; create it with ENCODING 'UTF8' TEMPLATE template0.`,
    )
  if (tables.length === 0) await pool.query(RECORD_TABLE)
  else if (tables[0].name !== '_prisma_migrations') {
    throw new Error(
      `The database ${database} has tables of something else (${tables[0].name}); give Spillway a database of its own.`,
    )
  }
  const applied = await pool.query('SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL')
  return new Set(applied.rows.map((row) => String(row.migration_name)))
}

async function apply(pool: Pool, name: string, script: string): Promise<void> {
  const checksum = createHash('sha256').update(script).digest('hex')
  const values = [randomUUID(), checksum, name].map((value) => `'${value.replaceAll("'", "''")}'`)
  const record = `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
    VALUES (${values.join()}, now(), 1)`
  try {
    // The server runs a text without values as one transaction.
    await pool.query(`${NO_TIME_LIMITS};\n${script}\n;\n${record}`)
  } catch (error) {
    if (lacksRight(error)) throw error
    const reason = error instanceof Error ? error.message : String(error)
    const message = `The migration ${name} failed. ${reason}\nNothing of it was applied: correct it, and migrate again.`
    throw new Error(message, { cause: error })
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    const url = readSecret(process.env, 'DATABASE_URL')
    if (!url) throw new Error('DATABASE_URL is not set; give it as postgresql://user:password@host:5432/database')
    const { applied } = await migrate(url)
    console.log(applied.length ? `Applied ${applied.join(', ')}.` : 'The database is up to date.')
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}
