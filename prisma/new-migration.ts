// Writes the next migration: `DATABASE_URL=... pnpm --filter @spillway/prisma migrate:new <name>`.
// It leads from the committed schema to the edited one: read the SQL, and commit both. The database
// is only asked for its version.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connectForScripts } from './src/connection.ts'
import { schemaDiff } from './test/schema-engine.ts'

const name = process.argv[2]
const url = process.env.DATABASE_URL
if (!name?.match(/^[a-z0-9_]+$/) || !url)
  throw new Error('Give the migration a name in snake_case, and DATABASE_URL a running PostgreSQL.')

const cwd = import.meta.dirname
const connection = await connectForScripts(url)
const committed = execFileSync('git', ['show', 'HEAD:./schema.prisma'], { cwd, encoding: 'utf8' })
const sql = await schemaDiff(connection, committed, readFileSync(`${cwd}/schema.prisma`, 'utf8'))
await connection.dispose()
if (sql === '') throw new Error('schema.prisma is as committed: there is nothing to migrate.')
const folder = `${cwd}/migrations/${new Date().toISOString().replace(/\D/g, '').slice(0, 14)}_${name}`
mkdirSync(folder)
writeFileSync(`${folder}/migration.sql`, sql)
console.log(`Wrote ${folder}/migration.sql.`)
