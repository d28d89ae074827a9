// Writes the next migration: `DATABASE_URL=... pnpm --filter @spillway/prisma migrate:new <name>`.
// It holds what leads from the schema as committed to the schema as edited, so edit schema.prisma, run this, read the SQL,
// commit both. The database is only asked for its version; any running PostgreSQL will do.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connectForScripts } from './src/connection.ts'
import { startSchemaEngine } from './src/schema-engine.ts'

const name = process.argv[2]
const url = process.env.DATABASE_URL
if (!name?.match(/^[a-z0-9_]+$/) || !url) {
  throw new Error('Give the migration a name in snake_case, and DATABASE_URL a running PostgreSQL.')
}

const here = import.meta.dirname
const connection = await connectForScripts(url)
const engine = await startSchemaEngine(connection)
const datamodel = (content: string) => ({
  tag: 'schemaDatamodel' as const,
  files: [{ path: 'schema.prisma', content }],
})
const { exitCode, stdout } = await engine.diff({
  from: datamodel(execFileSync('git', ['show', 'HEAD:./schema.prisma'], { cwd: here, encoding: 'utf8' })),
  to: datamodel(readFileSync(`${here}/schema.prisma`, 'utf8')),
  script: true,
  exitCode: true,
  filters: { externalTables: [], externalEnums: [] },
})
await connection.dispose()

if (exitCode === 0 || !stdout) throw new Error('schema.prisma is as committed: there is nothing to migrate.')
const timestamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14)
const folder = `migrations/${timestamp}_${name}`
mkdirSync(`${here}/${folder}`)
writeFileSync(`${here}/${folder}/migration.sql`, stdout)
console.log(`Wrote ${folder}/migration.sql.`)
