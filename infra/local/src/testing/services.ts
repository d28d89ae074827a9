// The services of a test run, on free ports and in a folder of its own, so that runs can be concurrent.
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { isRunning } from '../processes/process-table.ts'
import { defaultStateDir, programsDir } from '../processes/repository.ts'
import { removeHome } from '../services/postgres-user.ts'
import { query, withDatabase } from '../services/query.ts'
import { startServices } from '../services/services.ts'
import { build } from '../start/build.ts'
import { buildEngine, hasEngine } from '../start/engine.ts'
import type { LocalEnvironment } from '../start/environment.ts'
import { migrate } from '../start/migrate.ts'
import type { TestEnvironment } from './environment.ts'

export interface TestServices extends TestEnvironment {
  /** The run's folder, which close() deletes. */
  dir: string
  close(): Promise<void>
}

/** Builds all packages, starts the services and migrates the template database, from which namespaces are copied. */
export async function startTestServices(keeper: Keeper, environment: LocalEnvironment): Promise<TestServices> {
  await removeAbandoned()
  const id = `${process.pid}-${randomBytes(3).toString('hex')}`
  const dir = join(defaultStateDir, `test-${id}`)
  await mkdir(dir, { recursive: true })
  const remove = async (): Promise<void> => {
    await removeHome(join(dir, 'postgres'))
    await rm(dir, { recursive: true, force: true })
  }
  const starting = startServices({
    ...environment,
    keeper,
    dir,
    programsDir,
    password: randomBytes(12).toString('base64url'),
    durable: false,
    preferredPorts: { postgres: 0, redis: 0 },
    say: console.log,
  })
  try {
    // The first build of the engine takes a minute: that is left to `pnpm start` and to CI.
    const engine = hasEngine() || process.env.CI === 'true' ? buildEngine(keeper, console.log) : undefined
    const [services] = await Promise.all([starting, build(keeper), engine])
    const template = `spillway_template_${id.replace('-', '_')}`
    const templateUrl = withDatabase(services.databaseUrl, template)
    await migrate(keeper, templateUrl)
    // Otherwise autovacuum connects to it now and then, and copies have to wait.
    const maintenanceUrl = withDatabase(services.databaseUrl, 'postgres')
    await query(maintenanceUrl, `ALTER DATABASE "${template}" ALLOW_CONNECTIONS false`)
    const close = async (): Promise<void> => {
      // Only of an external server: an embedded one is deleted with its folder, and may have ended already.
      if (environment.databaseUrl !== undefined) await query(maintenanceUrl, `DROP DATABASE "${template}"`)
      await services.close()
      await remove()
    }
    return { templateUrl, redisUrl: services.redisUrl, dir, close }
  } catch (error) {
    // Services that are still starting would write into the folder while it is deleted.
    await starting.then(
      (services) => services.close(),
      () => undefined,
    )
    await remove()
    throw error
  }
}

/** Deletes the folders of runs that were killed. */
async function removeAbandoned(): Promise<void> {
  await mkdir(defaultStateDir, { recursive: true })
  for (const name of await readdir(defaultStateDir)) {
    const pid = Number(/^test-(\d+)-/.exec(name)?.[1])
    if (!pid || isRunning(pid)) continue
    await removeHome(join(defaultStateDir, name, 'postgres'))
    await rm(join(defaultStateDir, name), { recursive: true, force: true })
  }
}
