// What load tests stand on: the packages built, PostgreSQL and Redis running, and a database of this run's own.
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openKeeper } from '@spillway/local/processes/keeper'
import { defaultStateDir, programsDir } from '@spillway/local/processes/repository'
import { query, withDatabase } from '@spillway/local/services/query'
import { startServices } from '@spillway/local/services/services'
import { build } from '@spillway/local/start/build'
import { migrate } from '@spillway/local/start/migrate'
import { loadSecrets } from '@spillway/local/start/secrets'
import type { Services } from '../contenders/contender.ts'

export interface Environment extends Services {
  /** Whether PostgreSQL and Redis are ours, and may be moved to other cores. */
  embedded: boolean
  /** Drops the database and ends what was started. */
  close(): Promise<void>
}

/** Uses the servers that DATABASE_URL and REDIS_URL name, where set; starts embedded ones otherwise. */
export async function openEnvironment(env: NodeJS.ProcessEnv, say: (sentence: string) => void): Promise<Environment> {
  const keeper = openKeeper()
  const dir = join(defaultStateDir, 'load')
  mkdirSync(dir, { recursive: true })
  try {
    const [services] = await Promise.all([
      startServices({
        keeper,
        dir,
        programsDir,
        password: loadSecrets(dir).servicesPassword,
        // Whose disk is faster is not the question here.
        durable: false,
        databaseUrl: env.DATABASE_URL || undefined,
        redisUrl: env.REDIS_URL || undefined,
        preferredPorts: { postgres: 0, redis: 0 },
        say,
      }),
      build(keeper, ['@spillway/loadtests']),
    ])
    const name = `load_${randomBytes(4).toString('hex')}`
    const databaseUrl = withDatabase(services.databaseUrl, name)
    await migrate(keeper, databaseUrl)
    return {
      databaseUrl,
      redisUrl: services.redisUrl,
      embedded: !env.DATABASE_URL && !env.REDIS_URL,
      async close() {
        await query(withDatabase(services.databaseUrl, 'postgres'), `DROP DATABASE "${name}" WITH (FORCE)`)
        await keeper.close()
      },
    }
  } catch (error) {
    await keeper.close()
    throw error
  }
}
