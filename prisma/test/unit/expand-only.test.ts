// Migrations only expand: gateways of the version before run on the new schema while they are
// replaced, and again after a rollback. What is no longer needed is dropped a version later, by a
// migration that is named here.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'vitest'

const migrationsDir = new URL('../../migrations/', import.meta.url)

/** Migrations that drop what the version before them no longer used; by the name of the folder, with that version. */
const contracting: Readonly<Record<string, string>> = {}

const forbidden: [pattern: RegExp, why: string][] = [
  [/\bDROP\b/i, 'drops what the version before may use'],
  [/\bRENAME\b/i, 'renames what the version before uses'],
  [/\bALTER\s+COLUMN\b/i, 'changes a column that the version before reads or writes'],
  [/\bADD\s+COLUMN\b(?![^,;]*\bDEFAULT\b)[^,;]*\bNOT\s+NULL\b/i, 'adds a column that the version before does not fill'],
  [/\b(UPDATE\s+"|DELETE\s+FROM|TRUNCATE\s+")/i, 'changes rows, and locks them for as long as that takes'],
]

/** One sentence for each statement that is not safe beside the version before. */
function breaches(migration: string): string[] {
  const sql = migration.replaceAll(/--.*$/gm, '').replaceAll(/\$\$[\s\S]*?\$\$/g, "''")
  const made = new Set(Array.from(sql.matchAll(/CREATE\s+TABLE\s+"(\w+)"/gi), ([, table]) => table))
  const onOldTables = Array.from(
    sql.matchAll(
      /CREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)"\w+"\s+ON\s+"(\w+)"|ALTER\s+TABLE\s+"(\w+)"\s+ADD\s+CONSTRAINT/gi,
    ),
    ([statement, indexed, constrained]) => ({ statement, table: indexed ?? constrained }),
  )
  return [
    ...forbidden.filter(([pattern]) => pattern.test(sql)).map(([, why]) => why),
    ...onOldTables
      .filter(({ table }) => !made.has(table))
      .map(({ statement }) => `locks the writers of a table while all of it is read: ${statement}`),
  ]
}

test('no migration takes anything from the version before, or locks it out', () => {
  const names = readdirSync(migrationsDir, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  assert.ok(names.length > 0)
  for (const { name } of names) {
    if (name in contracting) continue
    const sql = readFileSync(new URL(`${name}/migration.sql`, migrationsDir), 'utf8')
    assert.deepEqual(breaches(sql), [], name)
  }
})

test('the rule finds what would break or stop the version before', () => {
  const unsafe = [
    'ALTER TABLE "users" DROP COLUMN "email";',
    'ALTER TABLE "users" RENAME COLUMN "email" TO "address";',
    'ALTER TABLE "users" ALTER COLUMN "email" SET NOT NULL;',
    'ALTER TABLE "users" ADD COLUMN "a" TEXT, ADD COLUMN "name" TEXT NOT NULL;',
    'UPDATE "users" SET "email" = lower("email");',
    'CREATE INDEX "users_name_idx" ON "users"("name");',
    'ALTER TABLE "users" ADD CONSTRAINT "named" CHECK ("name" <> \'\');',
  ]
  for (const sql of unsafe) assert.equal(breaches(sql).length, 1, sql)
  const safe = [
    'ALTER TABLE "users" ADD COLUMN "name" TEXT;\n-- DROP nothing',
    'ALTER TABLE "users" ADD COLUMN "logins" INTEGER NOT NULL DEFAULT 0;',
    'CREATE INDEX CONCURRENTLY "users_name_idx" ON "users"("name");',
    'CREATE TABLE "names" ("id" UUID NOT NULL);\nCREATE INDEX "names_id_idx" ON "names"("id");',
  ]
  for (const sql of safe) assert.deepEqual(breaches(sql), [], sql)
})
