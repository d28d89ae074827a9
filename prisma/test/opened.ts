// A client for one test, closed after it.
import type { TestContext } from 'vitest'
import { connectDatabase, type Database, type DatabaseOptions } from '../src/index.ts'

/** Small, and patient, because a busy machine is slow, unless told otherwise. */
export function opened(t: TestContext, url: string, options: Partial<DatabaseOptions> = {}): Database {
  const database = connectDatabase({
    url,
    poolSize: 2,
    connectionTimeoutMs: 60_000,
    statementTimeoutMs: 60_000,
    ...options,
  })
  t.onTestFinished(() => database.$disconnect())
  return database
}
