// Where Prisma's own command line finds the schema, the migrations and the database.
import { defineConfig } from 'prisma/config'

// `generate` would download the schema engine, which it never runs: any executable will do.
if (process.argv[2] === 'generate') process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath

// A build asks nobody whether a newer Prisma is out.
process.env.CHECKPOINT_DISABLE ??= 'true'

export default defineConfig({
  schema: 'schema.prisma',
  migrations: { path: 'migrations' },
  // Not Prisma's `env()`, which refuses an unset name even where no database is needed.
  datasource: { url: process.env.DATABASE_URL ?? '' },
})
