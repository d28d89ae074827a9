// The databases of one test file, and clients of them.
import { randomUUID } from 'node:crypto'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { afterAll, type TestContext } from 'vitest'
import { connectForScripts } from '../src/connection.ts'
import { connectDatabase, type Database, type DatabaseOptions } from '../src/index.ts'

/** Opens them for the file that calls this. Dropping one after the last test fails while a connection is open. */
export async function openDatabases() {
  const namespace = await createNamespace()
  const drops: string[] = []

  afterAll(async () => {
    for (const drop of drops) await rows(namespace.databaseUrl, drop)
    await namespace.close()
  })

  return {
    /** A database with the newest schema. */
    migratedUrl: namespace.databaseUrl,
    /** A new database without tables, owned by this role [our own], which goes with it. */
    async emptyDatabase(owner?: string): Promise<string> {
      const name = `scratch_${randomUUID()}`
      await rows(namespace.databaseUrl, `CREATE DATABASE "${name}" OWNER ${owner ?? 'DEFAULT'}`)
      drops.push(`DROP DATABASE "${name}"`, ...(owner === undefined ? [] : [`DROP ROLE ${owner}`]))
      const url = new URL(namespace.databaseUrl)
      url.pathname = name
      return url.href
    },
  }
}

/** The same database, for one who believes that it is reached through a pooler. */
export function pooled(url: string): string {
  const through = new URL(url)
  through.searchParams.set('pgbouncer', 'true')
  return through.href
}

/** A client that is closed after the test: small, and patient on a busy machine. */
export function opened(t: TestContext, url: string, options: Partial<DatabaseOptions> = {}): Database {
  const patient = { connectionTimeoutMs: 60_000, statementTimeoutMs: 60_000 }
  const database = connectDatabase({ url, poolSize: 2, ...patient, ...options })
  t.onTestFinished(() => database.$disconnect())
  return database
}

/** The rows of one query over a connection of its own, each a list of its columns. */
export async function rows(url: string, text: string): Promise<unknown[][]> {
  const pool = await connectForScripts(url)
  try {
    return (await pool.query<unknown[]>({ text, rowMode: 'array' })).rows
  } finally {
    await pool.end()
  }
}
