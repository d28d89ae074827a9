// A gateway and a worker of this checkout on services of their own, for measuring.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Keeper } from '@spillway/local/processes/keeper'
import { findPids } from '@spillway/local/processes/process-table'
import { defaultStateDir, programsDir } from '@spillway/local/processes/repository'
import { createAccounts } from '@spillway/local/services/accounts'
import { removeHome } from '@spillway/local/services/postgres-user'
import { startServices } from '@spillway/local/services/services'
import { build } from '@spillway/local/start/build'
import { migrate } from '@spillway/local/start/migrate'
import { type GatewayProcess, type Member, openSpillway } from '@spillway/local/testing'
import { type ApiClient, createApiClient } from '@spillway/local/testing/api-client'

/** A login that waits for the others of a spike. */
const PATIENCE_MS = 60_000

export interface MeasuredSystem {
  redisUrl: string
  queuePrefix: string
  gateway: GatewayProcess
  /** Of the gateway. */
  api: ApiClient
  worker: Member
  redisPids: number[]
  postgresPids: number[]
  /** Creates accounts with this stored hash, and returns their addresses. */
  accounts(name: string, count: number, passwordHash: string): Promise<string[]>
  close(): Promise<void>
}

/** Starts everything; the worker hashes on as many slots. */
export async function startSystem(keeper: Keeper, slots: number): Promise<MeasuredSystem> {
  const dir = await mkdtemp(join(defaultStateDir, 'sizing-'))
  const password = randomBytes(12).toString('base64url')
  const [services] = await Promise.all([
    startServices({
      keeper,
      dir,
      programsDir,
      password,
      durable: true,
      databaseUrl: undefined,
      redisUrl: undefined,
      preferredPorts: { postgres: 0, redis: 0 },
      say: console.log,
    }),
    build(keeper, ['@spillway/api']),
  ])
  const { databaseUrl, redisUrl } = services
  await migrate(keeper, databaseUrl)
  const spillway = openSpillway({
    databaseUrl,
    redisUrl,
    env: { SPILLWAY_TEST_HASHES: 'true', WORKER_CONCURRENCY: String(slots) },
  })
  const [gateway, worker] = await Promise.all([spillway.gateway(), spillway.worker()])
  await spillway.knowsWorkers()
  return {
    redisUrl,
    queuePrefix: spillway.queuePrefix,
    gateway,
    api: createApiClient(gateway.url, { timeoutMs: PATIENCE_MS }),
    worker,
    redisPids: findPids(`:${new URL(redisUrl).port}`, '-server'),
    postgresPids: findPids('postgres', '-p', new URL(databaseUrl).port),
    accounts: (name, count, passwordHash) => createAccounts(databaseUrl, name, count, passwordHash),
    async close() {
      await spillway.close()
      await services.close()
      await removeHome(join(dir, 'postgres'))
      await rm(dir, { recursive: true, force: true })
    },
  }
}
