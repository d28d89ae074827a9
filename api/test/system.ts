// Gateways and workers of one test file, on a database and Redis keys of their own.
import assert from 'node:assert/strict'
import { connectRedis, type RedisConnection } from '@spillway/client'
import { createNamespace, type Namespace, startProcess, type TestProcess, until } from '@spillway/local/testing'
import { connectDatabase, type Database } from '@spillway/prisma'
import { createLogger } from '@spillway/worker/log'
import { readGatewayConfig } from '../src/config.ts'
import { type Gateway, startGateway } from '../src/gateway.ts'
import { newSealKey, newSigningKey } from './keys.ts'

/** Low enough that a hash takes a millisecond. */
export const CHEAP_ARGON2 = { ARGON2_MEMORY_KIB: '1024', ARGON2_TIME: '1', ARGON2_PARALLELISM: '1' }

export interface Listening {
  /** Of the public port. */
  url: string
  opsUrl: string
}

export interface WorkerProcess {
  opsUrl: string
  process: TestProcess
}

export interface System {
  namespace: Namespace
  /** Looks into the database from the side. */
  database: Database
  /** Looks into Redis from the side. */
  redis: RedisConnection
  /** What gateways and workers get of the environment. */
  environment: Record<string, string>
  /** Starts a gateway in this process, and waits until it knows of all workers. */
  gateway(env?: NodeJS.ProcessEnv): Promise<Gateway>
  /** Starts a gateway as a process of its own, as deployed; the same otherwise. */
  gatewayProcess(env?: NodeJS.ProcessEnv): Promise<Listening & { process: TestProcess }>
  /** Starts a worker, always a process of its own. */
  worker(env?: NodeJS.ProcessEnv): Promise<WorkerProcess>
  /** Ends what runs; fails if a process does not exit with 0 or leaves a connection open. */
  close(): Promise<void>
}

/** Opens a namespace; what runs in it is the caller's choice. */
export async function openSystem(): Promise<System> {
  const namespace = await createNamespace()
  const database = connectDatabase({ url: namespace.databaseUrl, poolSize: 2 })
  const redis = connectRedis(namespace.redisUrl, 'consumer')
  const workers: WorkerProcess[] = []
  const closers: (() => Promise<void>)[] = []
  const environment = {
    ...CHEAP_ARGON2,
    DATABASE_URL: namespace.databaseUrl,
    REDIS_URL: namespace.redisUrl,
    QUEUE_PREFIX: namespace.queuePrefix,
    SPILLWAY_SEAL_KEYS: newSealKey(),
    SPILLWAY_JWT_KEYS: newSigningKey(),
    PORT: '0',
    OPS_PORT: '0',
    LIMIT_PER_ADDRESS: '0',
    LIMIT_PER_ACCOUNT: '0',
    LIMIT_REFRESH_PER_ADDRESS: '0',
    LIMIT_REFRESH_PER_SESSION: '0',
    LIMIT_REDEEM_PER_ADDRESS: '0',
    LOG_LEVEL: 'info',
  }

  async function knowsWorkers({ url }: Listening): Promise<void> {
    await until(async () => (await readiness(url)).workers === workers.length, { what: `${url} knowing all workers` })
  }

  return {
    namespace,
    database,
    redis,
    environment,
    async gateway(env = {}) {
      const gateway = await startQuietly({ ...environment, ...env })
      let closing: Promise<void> | undefined
      const close = () => (closing ??= gateway.close())
      closers.push(close)
      await knowsWorkers(gateway)
      return { ...gateway, close }
    },
    async gatewayProcess(env = {}) {
      const process = startProcess({ entry: 'api/dist/main.js', env: { ...environment, ...env } })
      closers.push(() => endedWell(process))
      const { url, opsUrl } = await process.waitForLog(({ msg }) => msg === 'gateway listening')
      const gateway = { url: String(url), opsUrl: String(opsUrl), process }
      await knowsWorkers(gateway)
      return gateway
    },
    async worker(env = {}) {
      const process = startProcess({
        entry: 'worker/dist/main.cjs',
        env: { ...environment, WORKER_CONCURRENCY: '1', ...env },
      })
      closers.push(() => endedWell(process))
      const { opsUrl } = await process.waitForLog(({ msg }) => msg === 'worker ready')
      const worker = { opsUrl: String(opsUrl), process }
      workers.push(worker)
      return worker
    },
    async close() {
      const ends = await Promise.allSettled(closers.map((close) => close()))
      redis.disconnect()
      await database.$disconnect()
      await namespace.close()
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    },
  }
}

/** Stops a worker as a frozen machine would, and lets it go on when the body is done or has failed. */
export async function whileFrozen<T>({ process: { pid } }: WorkerProcess, body: () => Promise<T>): Promise<T> {
  process.kill(pid, 'SIGSTOP')
  try {
    return await body()
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

/** Starts a gateway in this process that logs nothing. */
export function startQuietly(env: NodeJS.ProcessEnv): Promise<Gateway> {
  return startGateway(readGatewayConfig(env), env, createLogger({ service: 'gateway', level: 'silent' }))
}

/** What /readyz says, whatever its status. */
export async function readiness(
  url: string,
): Promise<{ status: string; checks: Record<string, string>; workers: number }> {
  const response = await fetch(`${url}/readyz`)
  return JSON.parse(await response.text())
}

async function endedWell(process: TestProcess): Promise<void> {
  assert.deepEqual(await process.stop(), { code: 0, signal: null })
}
