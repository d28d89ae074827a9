// PostgreSQL and Redis for a run of tests, load or chaos: on free ports and in a folder of
// its own, so that runs can be concurrent.
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { isRunning } from '../processes/process-table.ts'
import { defaultStateDir } from '../processes/repository.ts'
import { databaseOf, query, withDatabase } from '../services/query.ts'
import { allOrNone, startServices } from '../services/services.ts'
import { build, buildEngine, checkRedis, hasEngine, migrate } from '../start/build.ts'
import type { LocalEnvironment } from '../start/places.ts'

interface OwnServicesOptions {
  keeper: Keeper
  /** The purpose of the run, which names its folder and its database. */
  purpose: 'test' | 'load' | 'chaos'
  databaseUrl?: string | undefined
  redisUrl?: string | undefined
  /** The build, which the migration waits for [everything is built]. */
  building?: () => Promise<void>
  say?: (sentence: string) => void
}

export async function startOwnServices(options: OwnServicesOptions) {
  const { keeper, purpose, databaseUrl: givenUrl, redisUrl, building, say = console.log } = options
  await removeAbandoned()
  const id = `${process.pid}-${randomBytes(3).toString('hex')}`
  const dir = join(defaultStateDir, `${purpose}-${id}`)
  await mkdir(dir, { recursive: true })
  const password = randomBytes(12).toString('base64url')
  const starting = startServices({ keeper, dir, password, durable: false, databaseUrl: givenUrl, redisUrl, say })
  const [services] = await allOrNone([starting, building?.()])
  const database = `spillway_${purpose}_${id.replace('-', '_')}`
  const maintenanceUrl = withDatabase(services.databaseUrl, 'postgres')
  const databaseUrl = withDatabase(services.databaseUrl, database)
  await query(maintenanceUrl, `CREATE DATABASE "${database}"`)
    .then(() => migrate(keeper, databaseUrl))
    .then(() => checkRedis(redisUrl))
    .catch((error) => services.close().then(() => Promise.reject(error)))
  return {
    dir,
    /** A migrated database, which close() drops. */
    databaseUrl,
    redisUrl: services.redisUrl,
    postgres: services.postgres,
    async close(): Promise<void> {
      // An embedded server is deleted with its folder, and may have ended already.
      if (givenUrl !== undefined) await query(maintenanceUrl, `DROP DATABASE "${database}" WITH (FORCE)`)
      // Services that still run would write into the folder while it is deleted.
      await services.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

export async function startTestServices(keeper: Keeper, { databaseUrl, redisUrl }: LocalEnvironment) {
  // The first build of the engine takes a minute: that is left to `pnpm start` and to CI.
  const withEngine = hasEngine() || process.env.CI === 'true'
  const [services] = await allOrNone([
    startOwnServices({ keeper, purpose: 'test', databaseUrl, redisUrl, building: () => build(keeper) }),
    withEngine ? buildEngine(keeper, console.log) : undefined,
  ])
  const templateUrl = services.databaseUrl
  // Otherwise autovacuum connects to it now and then, and copies have to wait.
  const closeToAll = `ALTER DATABASE "${databaseOf(templateUrl)}" ALLOW_CONNECTIONS false`
  await query(withDatabase(templateUrl, 'postgres'), closeToAll)
  return { ...services, templateUrl }
}

/** Of runs that failed to start, or were killed. */
async function removeAbandoned(): Promise<void> {
  await mkdir(defaultStateDir, { recursive: true })
  for (const name of await readdir(defaultStateDir)) {
    const pid = Number(/^(?:test|load|chaos)-(\d+)-/.exec(name)?.[1])
    if (pid && !isRunning(pid)) await rm(join(defaultStateDir, name), { recursive: true, force: true })
  }
}
