// PostgreSQL and Redis for a run: those named in the environment, otherwise embedded ones.
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { allOrNone } from '../processes/all-or-none.ts'
import type { Keeper } from '../processes/keeper.ts'
import { UserError } from '../processes/user-error.ts'
import { startPostgres } from './postgres.ts'
import { pingRedis, startRedis } from './redis.ts'
import type { Service } from './service.ts'

export interface ServicesOptions {
  keeper: Keeper
  /** Where data and logs go. */
  dir: string
  /** Where a fetched Redis is kept. */
  programsDir: string
  /** The password of the embedded ones. */
  password: string
  /** False for tests: see PostgresOptions. */
  durable: boolean
  /** Those to use instead of embedded ones, where set. */
  databaseUrl: string | undefined
  redisUrl: string | undefined
  /** Taken where free; otherwise any port. 0 is any port. */
  preferredPorts: { postgres: number; redis: number }
  /** Told what is about to be fetched. */
  say: (sentence: string) => void
}

export interface Services {
  databaseUrl: string
  redisUrl: string
  /** Resolves with a name when an embedded one has ended, for whatever reason. */
  died: Promise<string>
  close(): Promise<void>
}

/** Starts what is not given, both at once. Rejects with a UserError, nothing left running, if one cannot be had. */
export async function startServices(options: ServicesOptions): Promise<Services> {
  const { dir, preferredPorts } = options
  await mkdir(join(dir, 'logs'), { recursive: true })
  // PostgreSQL's user must be able to enter it, when that is another one.
  await chmod(dir, 0o711)
  const [postgres, redis] = await allOrNone([
    // The migration that follows is the first to ask a given PostgreSQL, and tells what is wrong with it.
    options.databaseUrl === undefined
      ? startPostgres({
          ...options,
          dir: join(dir, 'postgres'),
          logFile: join(dir, 'logs', 'postgres.log'),
          preferredPort: preferredPorts.postgres,
        })
      : given(options.databaseUrl),
    options.redisUrl === undefined
      ? startRedis({
          ...options,
          dir: join(dir, 'redis'),
          logFile: join(dir, 'logs', 'redis.log'),
          preferredPort: preferredPorts.redis,
        })
      : givenRedis(options.redisUrl),
  ])
  return {
    databaseUrl: postgres.url,
    redisUrl: redis.url,
    died: Promise.race([postgres.exited.then(() => 'PostgreSQL'), redis.exited.then(() => 'Redis')]),
    close: async () => {
      await Promise.all([postgres.close(), redis.close()])
    },
  }
}

/** Uses a Redis that someone else runs, if it answers. */
async function givenRedis(url: string): Promise<Service> {
  // Sentinel and cluster forms are for those who connect; here only a single server is asked.
  if (!/^rediss?:\/\/[^,]*$/.test(url)) return given(url)
  try {
    await pingRedis(url)
    return given(url)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new UserError(
      `REDIS_URL is set, but nothing answers there (${why}): start that server, or unset REDIS_URL.`,
      {
        cause,
      },
    )
  }
}

async function given(url: string): Promise<Service> {
  return { url, exited: new Promise(() => {}), close: async () => {} }
}
