// A gateway and a worker of this checkout on services of their own, for measurements.
import type { Keeper } from '@spillway/local/processes/keeper'
import { findPids } from '@spillway/local/processes/process-table'
import { openSpillway } from '@spillway/local/rig'
import { createApiClient } from '@spillway/local/rig/api-client'
import { startOwnServices } from '@spillway/local/rig/services'
import { createAccounts } from '@spillway/local/services/query'

/** A login waits for the others of a spike. */
const PATIENCE_MS = 60_000

export type MeasuredSystem = Awaited<ReturnType<typeof startSystem>>

/** Starts everything; the worker has this number of slots. */
export async function startSystem(keeper: Keeper, slots: number) {
  const packages = ['@spillway/api', '@spillway/worker']
  const services = await startOwnServices({ keeper, purpose: 'sizing', packages, durable: true })
  const { databaseUrl, redisUrl } = services
  const env = { SPILLWAY_TEST_HASHES: 'true', WORKER_CONCURRENCY: String(slots) }
  const spillway = openSpillway({ databaseUrl, redisUrl, env })
  const [gateway, worker] = await Promise.all([spillway.gateway(), spillway.worker()])
  await spillway.knowsWorkers()
  return {
    redisUrl,
    queuePrefix: spillway.queuePrefix,
    gateway,
    /** Of the gateway. */
    api: createApiClient(gateway.url, { timeoutMs: PATIENCE_MS }),
    worker,
    redisPids: findPids(`:${new URL(redisUrl).port}`, '-server'),
    postgresPids: findPids('postgres', '-p', new URL(databaseUrl).port),
    /** Creates accounts with this stored hash, and returns their addresses. */
    accounts: (name: string, count: number, passwordHash: string) =>
      createAccounts(databaseUrl, name, count, passwordHash),
    async close() {
      await spillway.close()
      await services.close()
    },
  }
}
