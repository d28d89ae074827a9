import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'vitest'
import { connectForScripts } from '../../src/connection.ts'
import { connectOrCreate } from '../../src/migrate.ts'
import { openDatabases, rows } from '../databases.ts'
import { schemaDiff } from '../schema-engine.ts'

const { absentDatabase, migratedUrl } = await openDatabases()

test('the migrations and schema.prisma give the same tables, constraints and indexes', async () => {
  const drawn = absentDatabase()
  await createFromSchema(drawn)
  const catalogue = await readCatalogue(migratedUrl)
  assert.ok(catalogue.length > 20)
  assert.deepEqual(catalogue, await readCatalogue(drawn))
})

test('a user takes sessions along when deleted', async () => {
  const id = '00000000-0000-4000-8000-000000000000'
  const connection = await connectForScripts(migratedUrl)
  await connection.underlyingDriver().query(`
    INSERT INTO users (id, email, password_hash, updated_at) VALUES ('${id}', 'a@example.test', 'x', now());
    INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, family_hash, token_hash) VALUES ('${id}', '${id}', now(), now(), '', '');
    DELETE FROM users;`)
  await connection.dispose()
  assert.deepEqual(await rows(migratedUrl, 'SELECT id FROM sessions'), [])
})

/** Creates the tables as the schema file alone asks for them. */
async function createFromSchema(url: string): Promise<void> {
  const connection = await connectOrCreate(url)
  const content = await readFile(`${import.meta.dirname}/../../schema.prisma`, 'utf8')
  await connection.underlyingDriver().query(await schemaDiff(connection, undefined, content))
  await connection.dispose()
}

/** Every column, constraint and index, as PostgreSQL itself describes them. */
function readCatalogue(url: string): Promise<unknown[][]> {
  return rows(
    url,
    `SELECT table_name || '.' || column_name, concat_ws(' ', data_type, datetime_precision, is_nullable, column_default)
     FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> '_prisma_migrations'
     UNION ALL
     SELECT conrelid::regclass || ': ' || conname, pg_get_constraintdef(oid) FROM pg_constraint
     WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> '_prisma_migrations'
     UNION ALL
     SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> '_prisma_migrations'
     ORDER BY 1, 2`,
  )
}
