import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { type TestContext, test } from 'vitest'
import { migrate } from '../../src/migrate.ts'
import { openDatabases, pooled, rows } from '../databases.ts'

const { emptyDatabase, migratedUrl } = await openDatabases()

const migrationsDir = join(import.meta.dirname, '../../migrations')
const names = (await readdir(migrationsDir)).filter((name) => !name.endsWith('.toml')).sort()

test('of migrators that start at once, one applies and the others find nothing to do', async () => {
  const url = await emptyDatabase()
  const results = await Promise.all(Array.from({ length: 5 }, () => migrate(url)))
  assert.deepEqual(
    results.flatMap(({ applied }) => applied),
    names,
  )
})

test('through a pooler, no lock is left to the session that the migrations run in', async (t) => {
  const url = await emptyDatabase()
  const directory = await migrations(t, {
    '1_locks': `CREATE TABLE locks AS SELECT pid = pg_backend_pid() AS here FROM pg_locks
      WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  })
  const results = await Promise.all([1, 2, 3].map(() => migrate(pooled(url), directory)))
  assert.deepEqual(
    results.flatMap(({ applied }) => applied),
    ['1_locks'],
  )
  assert.ok((await rows(url, 'SELECT here FROM locks WHERE here')).length === 0)
  assert.ok((await rows(url, 'SELECT here FROM locks')).length > 0)
})

test('time limits of the database end neither a migration nor the wait for another migrator', async (t) => {
  const url = await emptyDatabase()
  const name = new URL(url).pathname.slice(1)
  for (const limit of ['statement_timeout', 'idle_in_transaction_session_timeout'])
    await rows(migratedUrl, `ALTER DATABASE "${name}" SET ${limit} = '1s'`)
  const directory = await migrations(t, { '1_slow': 'SELECT pg_sleep(1.5); CREATE TABLE slow (id int);' })
  const results = await Promise.all([1, 2].map(() => migrate(url, directory)))
  assert.deepEqual(
    results.flatMap(({ applied }) => applied),
    ['1_slow'],
  )
})

test('a database is migrated once; the record is the same as prisma migrate deploy keeps, without any account', async () => {
  const url = await emptyDatabase()
  assert.deepEqual((await migrate(url)).applied, names)
  assert.deepEqual((await migrate(url)).applied, [])
  assert.deepEqual(await rows(url, 'SELECT id FROM users'), [])
  const columns = await rows(
    url,
    `SELECT column_name::text, data_type::text FROM information_schema.columns
     WHERE table_name = '_prisma_migrations' ORDER BY ordinal_position`,
  )
  assert.deepEqual(columns, [
    ['id', 'character varying'],
    ['checksum', 'character varying'],
    ['finished_at', 'timestamp with time zone'],
    ['migration_name', 'character varying'],
    ['logs', 'text'],
    ['rolled_back_at', 'timestamp with time zone'],
    ['started_at', 'timestamp with time zone'],
    ['applied_steps_count', 'integer'],
  ])
  const sha256 = async (name: string) =>
    createHash('sha256')
      .update(await readFile(join(migrationsDir, name, 'migration.sql')))
      .digest('hex')
  assert.deepEqual(
    await rows(
      url,
      'SELECT migration_name, checksum, finished_at IS NOT NULL, applied_steps_count FROM _prisma_migrations',
    ),
    await Promise.all(names.map(async (name) => [name, await sha256(name), true, 1])),
  )
})

test('semicolons in comments, strings and function bodies do not cut a migration', async (t) => {
  const url = await emptyDatabase()
  const directory = await migrations(t, {
    '1_function': `-- one; two
      CREATE FUNCTION two() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RETURN 2; END $$;
      CREATE TABLE pairs AS SELECT two() AS n, ';' AS s;`,
  })
  await migrate(url, directory)
  assert.deepEqual(await rows(url, 'SELECT n, s FROM pairs'), [[2, ';']])
})

test('a migration that fails leaves nothing behind, is named with the reason, and is applied once it is correct', async (t) => {
  const url = await emptyDatabase()
  const directory = await migrations(t, { '1_half': 'CREATE TABLE half (id int); SELECT 1 / 0;' })
  await assert.rejects(migrate(url, directory), /^Error: The migration 1_half failed\. .*division by zero\n/)
  assert.deepEqual(await rows(url, `SELECT to_regclass('half')::text`), [[null]])
  assert.deepEqual(await rows(url, 'SELECT FROM _prisma_migrations'), [])

  await writeFile(join(directory, '1_half/migration.sql'), 'CREATE TABLE half (id int)')
  assert.deepEqual((await migrate(url, directory)).applied, ['1_half'])
  assert.deepEqual((await migrate(url, directory)).applied, [])
})

test('a database with tables of something else is left alone', async () => {
  const url = await emptyDatabase()
  await rows(url, 'CREATE TABLE orders (id int)')
  await assert.rejects(migrate(url), /has tables of something else \(orders\); give Spillway a database of its own\./)
  assert.deepEqual(await rows(url, `SELECT to_regclass('users')::text`), [[null]])
})

test('the migrations of something else are told by a sentence, and nothing is applied', async (t) => {
  const url = await emptyDatabase()
  await migrate(url, await migrations(t, { '1_orders': 'CREATE TABLE orders (id int);' }))
  await assert.rejects(migrate(url), /has the migrations of something else; give Spillway a database of its own\./)
  assert.deepEqual(await rows(url, `SELECT to_regclass('users')::text`), [[null]])
})

test('a missing database, missing rights and a missing password are told by a sentence, whatever characters the password has', async (t) => {
  const { host, pathname } = new URL(await emptyDatabase())
  const [name, role] = [pathname.slice(1), `role_${pathname.slice(-12)}`]
  const urlOf = (database: string, password: string) => `postgresql://${role}${password}@${host}/${database}`
  await rows(migratedUrl, `CREATE ROLE ${role} LOGIN PASSWORD '7#x?y%'`)
  t.onTestFinished(async () => {
    await rows(migratedUrl, `DROP ROLE ${role}`)
  })
  const sentence = (end: string) => ({ message: new RegExp(`^The database \\S+ at ${host} cannot be used: ${end}`) })
  await assert.rejects(migrate(urlOf('nowhere', ':7#x?y%25')), sentence('database "nowhere" does not exist\\.$'))
  await assert.rejects(migrate(urlOf(name, ':7#x?y%25')), sentence('its user lacks a right there: make it the owner'))
  await assert.rejects(migrate(urlOf(name, '')), sentence('it asks for a password, and DATABASE_URL has none\\.$'))
})

/** A migrations folder in Prisma's layout, removed after the test. */
async function migrations(t: TestContext, scripts: Record<string, string>): Promise<string> {
  const directory = await scratchDir(t)
  await writeFile(join(directory, 'migration_lock.toml'), 'provider = "postgresql"\n')
  for (const [name, sql] of Object.entries(scripts)) {
    await mkdir(join(directory, name))
    await writeFile(join(directory, name, 'migration.sql'), sql)
  }
  return directory
}
