// Gateways and workers of one test file, on a database and Redis keys of their own.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { createNamespace, type Ending, type Namespace } from '@spillway/infra/harness/namespace'
import {
  type GatewayProcess,
  type Member,
  type MemberOptions,
  openSpillway,
  withDoubles,
} from '@spillway/infra/harness/spillway'
import { startProxy, type TcpProxy } from '@spillway/infra/harness/tcp-proxy'
import { until } from '@spillway/infra/processes/until'
import { readinessOf } from '@spillway/infra/start/member'
import { connectDatabase, type Database } from '@spillway/prisma'
import { connectRedis, type RedisConnection } from '@spillway/queue/client'
import { afterAll } from 'vitest'
import { readGatewayConfig } from '../src/config.ts'
import { type Gateway, startGateway } from '../src/start.ts'
import { Client } from './client.ts'

/** Low enough that a hash takes a millisecond. */
export const CHEAP_ARGON2 = { ARGON2_MEMORY_KIB: '1024', ARGON2_TIME: '1', ARGON2_PARALLELISM: '1' }

/** Without the engine, which measures itself for 0.5 s at each start; the warm worker has it */
const ONE_THREAD = { WORKER_CONCURRENCY: '1', HASH_ENGINE: 'packages' }

export interface Listening {
  /** Of the public port. */
  url: string
  opsUrl: string
}

/** Clients of a gateway's public port, and of its port for services, if it has one. */
export interface Clients {
  api: Client
  service: Client
}

function withClients<T extends Pick<Gateway, 'url' | 'serviceUrl'>>(gateway: T): T & Clients {
  return Object.assign(gateway, { api: new Client(gateway.url), service: new Client(gateway.serviceUrl ?? '') })
}

export interface System {
  namespace: Namespace
  /** Looks into the database from the side. */
  database: Database
  /** Looks into Redis from the side. */
  redis: RedisConnection
  /** The environment of gateways and workers. */
  environment: NodeJS.ProcessEnv
  /** Starts a gateway in this process, and waits until it knows of all workers. */
  gateway(env?: NodeJS.ProcessEnv, pace?: Pace): Promise<Gateway & Clients>
  /** Starts a gateway that reaches PostgreSQL or Redis by a proxy, which is closed with the test. */
  behindProxy(
    t: Ending,
    name: 'DATABASE_URL' | 'REDIS_URL',
    env?: NodeJS.ProcessEnv,
    pace?: Pace,
  ): Promise<Gateway & Clients & { proxy: TcpProxy }>
  /** Starts a gateway as a process of its own, as deployed, by another entry if one is given. */
  gatewayProcess(env?: NodeJS.ProcessEnv, program?: Pick<MemberOptions, 'entry'>): Promise<GatewayProcess & Clients>
  /** Starts a worker, always a process of its own. */
  worker(env?: NodeJS.ProcessEnv, program?: Pick<MemberOptions, 'entry'>): Promise<Member>
  /**
   * Ends what runs, once: with the file or test, unless it has been called before. Fails if a
   * process does not exit with 0 or leaves a connection open.
   */
  close(): Promise<void>
}

/** What a file of tests opens is closed with it, the last first. */
export const ofFile: Ending = { onTestFinished: afterAll }

/** Opens a namespace for a file of tests [or one test]; what runs in it is the caller's choice. */
export async function openSystem(t = ofFile): Promise<System> {
  const base = await openBase()
  return systemOn(base, base.close, t)
}

/** Without further workers, which would outlive the file. */
export interface SharedSystem extends Omit<System, 'worker'> {
  /** Hashes for every file of this process; a test that freezes it lets it go on. */
  warmWorker: Member
}

let shared: Promise<{ base: Base; warmWorker: Member }> | undefined

/**
 * What the files of one process share: a namespace with a worker, warm. For tests that neither
 * kill, fill nor configure it, and that count nothing but what belongs to their own accounts.
 * Closing ends the gateways of the caller alone.
 */
export async function shareSystem(): Promise<SharedSystem> {
  shared ??= openBase().then(async (base) => {
    const warmWorker = await base.spillway.worker({ ...withDoubles, env: { HASH_ENGINE: 'native' } })
    return { base, warmWorker }
  })
  const { base, warmWorker } = await shared
  return { ...systemOn(base, async () => [], ofFile), warmWorker }
}

type Base = Awaited<ReturnType<typeof openBase>>

async function openBase() {
  const namespace = await createNamespace()
  const patience = { connectionTimeoutMs: 60_000, statementTimeoutMs: 60_000 }
  const database = connectDatabase({ url: namespace.databaseUrl, poolSize: 2, ...patience })
  const redis = connectRedis(namespace.redisUrl, 'consumer')
  const spillway = openSpillway({ ...namespace, env: CHEAP_ARGON2, workerEnv: ONE_THREAD })
  /** Ends what runs. Resolves with one sentence for each process that ended badly. */
  async function close(): Promise<string[]> {
    const badEnds = await spillway.close()
    redis.disconnect()
    await database.$disconnect()
    await namespace.close()
    return badEnds
  }
  return { namespace, database, redis, spillway, close }
}

function systemOn(base: Base, closeBase: () => Promise<string[]>, t: Ending): System {
  const { namespace, database, redis, spillway } = base
  const closers: (() => Promise<void>)[] = []
  const { environment } = spillway

  async function knowsWorkers(gateway: Listening): Promise<void> {
    const { length } = spillway.workers
    await until(async () => (await readinessOf(gateway.url)).workers === length, {
      what: `${gateway.url} knowing all workers`,
    })
  }

  async function end(): Promise<void> {
    const ends = await Promise.allSettled(closers.map((close) => close()))
    const badEnds = await closeBase()
    for (const each of ends) if (each.status === 'rejected') throw each.reason
    assert.deepEqual(badEnds, [])
  }
  let ending: Promise<void> | undefined
  const close = () => (ending ??= end())
  t.onTestFinished(close)

  async function gateway(env: NodeJS.ProcessEnv = {}, pace?: Pace) {
    const started = await startQuietly({ ...environment, ...env }, pace)
    let closing: Promise<void> | undefined
    const close = () => (closing ??= started.close())
    closers.push(close)
    await knowsWorkers(started)
    return { ...started, close }
  }

  return {
    ...{ namespace, database, redis, environment, close, gateway },
    async behindProxy(t, name, env = {}, pace) {
      const proxy = await startProxy(name === 'DATABASE_URL' ? namespace.databaseUrl : namespace.redisUrl)
      t.onTestFinished(() => proxy.close())
      return { ...(await gateway({ [name]: proxy.url, ...env }, pace)), proxy }
    },
    async gatewayProcess(env = {}, program = {}) {
      const gateway = await spillway.gateway({ env, ...program })
      closers.push(async () => {
        gateway.signal('SIGCONT')
        await gateway.stop()
      })
      await knowsWorkers(gateway)
      return withClients(gateway)
    },
    worker: (env = {}, program = {}) => spillway.worker({ env, ...program }),
  }
}

/** Stops a worker as a frozen machine would, until the body is done or has failed */
export async function whileFrozen<T>(worker: Member, body: () => Promise<T>): Promise<T> {
  worker.signal('SIGSTOP')
  try {
    return await body()
  } finally {
    worker.signal('SIGCONT')
  }
}

/** How long refusals, and tickets that are issued at once, are held [not at all]. */
type Pace = (holdMs: number) => number

/** For requests that must be held: if a busy machine makes the worker look gone, a ticket is issued at once. */
export const heldAnyway: Pace = (holdMs) => holdMs

/** Starts a gateway in this process that logs nothing. */
export async function startQuietly(env: NodeJS.ProcessEnv, paceMs: Pace = () => 0): Promise<Gateway & Clients> {
  const logger = createLogger({ service: 'gateway', level: 'silent' })
  return withClients(await startGateway(readGatewayConfig(env), env, logger, { paceMs }))
}

/** What /readyz says, whatever its status. */
export async function readiness(
  url: string,
): Promise<{ status: string; checks: Record<string, string>; workers: number }> {
  const response = await fetch(`${url}/readyz`)
  return JSON.parse(await response.text())
}

/** Of a transaction that holds locks while a test goes on, in milliseconds. */
export const lockOptions = { timeout: 60_000, maxWait: 60_000 }

/** Whether queries to this database wait for a lock now, at least so many. */
export async function locksAwaited(database: Database, count = 1): Promise<boolean> {
  const waiting = await database.$queryRaw<unknown[]>`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return waiting.length >= count
}
