// PostgreSQL and Redis for a run: from the environment, else embedded.
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startPostgres } from './postgres.ts'
import { startRedis } from './redis.ts'
import type { ProgramOptions, Service } from './service.ts'

interface ServicesOptions extends ProgramOptions {
  password: string
  durable: boolean
  databaseUrl?: string | undefined
  redisUrl?: string | undefined
  /** Used if they are free [any ports]. */
  preferredPorts?: { postgres: number; redis: number }
}

/** Starts the services that are not given: all, or none. Rejects with a UserError. */
export async function startServices(options: ServicesOptions) {
  const { dir, preferredPorts, databaseUrl, redisUrl } = options
  await mkdir(join(dir, 'logs'), { recursive: true })
  // PostgreSQL may run as another user, who must be able to enter this folder.
  await chmod(dir, 0o711)
  const at = (name: 'postgres' | 'redis') => ({
    ...options,
    dir: join(dir, name),
    logFile: join(dir, 'logs', `${name}.log`),
    preferredPort: preferredPorts?.[name],
  })
  const [postgres, redis] = await allOrNone([
    databaseUrl === undefined ? startPostgres(at('postgres')) : given(databaseUrl),
    redisUrl === undefined ? startRedis(at('redis')) : given(redisUrl),
  ])
  return {
    databaseUrl: postgres.url,
    redisUrl: redis.url,
    postgres,
    /** Resolves with the name of an embedded service when it has ended, for any reason. */
    died: Promise.race([postgres.exited.then(() => 'PostgreSQL'), redis.exited.then(() => 'Redis')]),
    async close(): Promise<void> {
      await Promise.all([postgres.close(), redis.close()])
    },
  }
}

/** A server of the environment, which is neither checked, ended nor started here. */
async function given(url: string): Promise<Service> {
  const nothing = async (): Promise<void> => {}
  const own = { pid: () => undefined, signal: () => {}, kill: nothing, start: nothing, close: nothing }
  return { url, exited: new Promise(() => {}), ...own }
}

/** Waits for all. If one fails, closes the others and rejects with the first failure. */
export async function allOrNone<T extends readonly (Promise<unknown> | undefined)[] | []>(starts: T) {
  const ends: readonly PromiseSettledResult<unknown>[] = await Promise.allSettled(starts)
  if (ends.some(({ status }) => status === 'rejected'))
    await Promise.all(ends.map((end) => end.status === 'fulfilled' && Object(end.value).close?.()))
  return Promise.all(starts)
}
