// The databases of one test file, dropped after its last test: which fails if a connection to one
// is still open.
import { randomUUID } from 'node:crypto'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { afterAll } from 'vitest'
import { connectForScripts } from '../src/connection.ts'

/** Opens them for the file that calls this, at its top. */
export async function openDatabases() {
  const namespace = await createNamespace()
  const scratchNames: string[] = []

  afterAll(async () => {
    const connection = await connectForScripts(namespace.databaseUrl)
    for (const name of scratchNames) await connection.underlyingDriver().query(`DROP DATABASE IF EXISTS "${name}"`)
    await connection.dispose()
    await namespace.close()
  })

  return {
    /** A database with the newest schema. */
    migratedUrl: namespace.databaseUrl,
    /** The URL of a database that does not exist yet. */
    absentDatabase(): string {
      const name = `scratch_${randomUUID()}`
      scratchNames.push(name)
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
