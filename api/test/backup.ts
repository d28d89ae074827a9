// Backups of a database: by pg_dump, as operators make them, where there is one for this server. The embedded PostgreSQL comes without:
// there all rows are copied in one snapshot, and restored into a database that is migrated anew.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { Keeper } from '@spillway/infra/processes/keeper'
import { run } from '@spillway/infra/processes/run'
import { databaseOf, query, withDatabase } from '@spillway/infra/services/query'
import { migrate } from '@spillway/infra/start/build'

/** Those that a row refers to come first. */
const tables = ['users', 'sessions', 'mail_tokens', 'used_tickets', 'audit_events', 'tombstone_key', 'tombstones']

/** Writes the file, while the system runs. What is returned restores it into a database of the same name, which must have been dropped. */
export async function backUp(databaseUrl: string, file: string): Promise<() => Promise<void>> {
  if (await fitsPgDump(databaseUrl)) {
    await run('pg_dump', ['--format=custom', `--file=${file}`, `--dbname=${databaseUrl}`])
    return async () => {
      await query(withDatabase(databaseUrl, 'postgres'), `CREATE DATABASE "${databaseOf(databaseUrl)}"`)
      await run('pg_restore', ['--no-owner', '--exit-on-error', `--dbname=${databaseUrl}`, file])
    }
  }
  await copyRows(databaseUrl, file)
  return () => restoreRows(databaseUrl, file)
}

/** pg_dump refuses a server that is newer than itself. */
async function fitsPgDump(databaseUrl: string): Promise<boolean> {
  const version = await run('pg_dump', ['--version']).catch(() => '')
  const [row] = await query(databaseUrl, 'SHOW server_version')
  return Number.parseInt(/\d+/.exec(version)?.[0] ?? '0', 10) >= Number.parseInt(String(row?.server_version), 10)
}

async function copyRows(databaseUrl: string, file: string): Promise<void> {
  const known = await query(databaseUrl, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
  const names = known.map(({ tablename }) => tablename).sort()
  assert.deepEqual(names, ['_prisma_migrations', ...tables].sort(), 'a table is missing from the backup')
  // One statement sees one state of all tables.
  const lists = tables.map((table) => `'${table}', (SELECT coalesce(json_agg(t), '[]') FROM ${table} t)`)
  const [row] = await query(databaseUrl, `SELECT json_build_object(${lists.join(', ')})::text AS rows`)
  await writeFile(file, String(row?.rows))
}

async function restoreRows(databaseUrl: string, file: string): Promise<void> {
  const keeper = new Keeper()
  try {
    await migrate(keeper, databaseUrl)
  } finally {
    await keeper.close()
  }
  const rows: Record<string, object[]> = JSON.parse(await readFile(file, 'utf8'))
  for (const table of tables) {
    const insert = `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1::json)`
    await query(databaseUrl, insert, [JSON.stringify(rows[table])])
  }
}
