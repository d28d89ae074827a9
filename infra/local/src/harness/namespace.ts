// The environment of a test run. Each test file gets its own database and Redis key prefix in it.
import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { UserError } from '../processes/command-line.ts'
import { until } from '../processes/until.ts'
import { databaseOf, query, withDatabase } from '../services/query.ts'

/** How long PostgreSQL may list a closed connection. */
const DISCONNECT_MS = 20_000

export type Namespace = Awaited<ReturnType<typeof createNamespace>>

export async function createNamespace() {
  const { templateUrl, redisUrl } = testEnvironment()
  const name = `test_${randomBytes(6).toString('hex')}`
  const queuePrefix = `{${name.replace('_', '-')}}`
  const template = databaseOf(templateUrl)
  const maintenanceUrl = withDatabase(templateUrl, 'postgres')
  await query(maintenanceUrl, `CREATE DATABASE "${name}" TEMPLATE "${template}"`)
  /** Deletes database and keys. Rejects, naming them, if connections were left open. */
  const close = async (): Promise<void> => {
    let leaked: string[] = []
    const isLeft = async () => {
      leaked = await connectionsTo(maintenanceUrl, name)
      return leaked.length === 0
    }
    await until(isLeft, { timeoutMs: DISCONNECT_MS }).catch(() => undefined)
    await query(maintenanceUrl, `DROP DATABASE "${name}" WITH (FORCE)`)
    await deleteKeys(redisUrl, queuePrefix)
    if (leaked.length > 0) throw new Error(`connections to the database were left open: ${leaked.join('; ')}`)
  }
  return {
    /** A migrated database of its own. */
    databaseUrl: withDatabase(templateUrl, name),
    redisUrl,
    /** The prefix of its keys, in braces: Redis Cluster keeps a hash tag in one slot. */
    queuePrefix,
    close,
  }
}

async function connectionsTo(maintenanceUrl: string, database: string): Promise<string[]> {
  const rows = await query(
    maintenanceUrl,
    'SELECT pid, application_name, state, query FROM pg_stat_activity WHERE datname = $1',
    [database],
  )
  return rows.map((row) => `${row.application_name || 'unnamed'} (pid ${row.pid}, ${row.state}), last: ${row.query}`)
}

export async function deleteKeys(redisUrl: string, prefix: string): Promise<void> {
  const redis = new Redis(redisUrl)
  try {
    for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
      if (Array.isArray(keys) && keys.length > 0) await redis.unlink(...keys)
    }
  } finally {
    redis.disconnect()
  }
}

interface TestEnvironment {
  /** The migrated database that namespaces are copies of. Nobody connects to it. */
  templateUrl: string
  redisUrl: string
  dir: string
}

/** As variables for child processes. */
export function testVariables({ templateUrl, redisUrl, dir }: TestEnvironment): NodeJS.ProcessEnv {
  return { SPILLWAY_TEST_TEMPLATE_URL: templateUrl, SPILLWAY_TEST_REDIS_URL: redisUrl, SPILLWAY_TEST_DIR: dir }
}

/** Throws a UserError outside of a run. */
export function testEnvironment(): TestEnvironment {
  const { SPILLWAY_TEST_TEMPLATE_URL: templateUrl, SPILLWAY_TEST_REDIS_URL: redisUrl } = process.env
  const { SPILLWAY_TEST_DIR: dir } = process.env
  if (templateUrl !== undefined && redisUrl !== undefined && dir !== undefined) return { templateUrl, redisUrl, dir }
  throw new UserError(
    'This test needs PostgreSQL and Redis: run it by "pnpm test", with a part of its file name after it.',
  )
}

/** A test, or a file of tests: `{ onTestFinished: afterAll }`. */
export interface Ending {
  onTestFinished(close: () => Promise<void>): void
}

/** A new folder that anyone may enter. It is gone after the test. */
export async function scratchDir(t: Ending): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'spillway-test-'))
  await chmod(dir, 0o711)
  t.onTestFinished(() => rm(dir, { recursive: true, force: true }))
  return dir
}

/**
 * A stored hash whose verification lasts until its gate is opened, or the test ends: what a test
 * does meanwhile may take as long as the machine needs. For workers with doubles (doubles.mjs).
 */
export async function closedGate(t: Ending): Promise<{ storedHash: string; open(): void }> {
  const file = join(await scratchDir(t), 'gate')
  writeFileSync(file, '')
  const path = Buffer.from(file).toString('base64url')
  return { storedHash: `$spillway-gate$${path}$`, open: () => rmSync(file, { force: true }) }
}
