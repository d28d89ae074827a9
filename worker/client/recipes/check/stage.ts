// Where the recipes are compared: an application with all that it needs on one core, the storm on another.
import { join } from 'node:path'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { canPin, moveTo } from '@spillway/infra/processes/processor-time'
import { newSealKey, startWorker } from '@spillway/infra/rig'
import { startRedis } from '@spillway/infra/services/redis'

/** Of the storm. */
const STORM_CORES = [0]
/** Of the application, of what hashes for it, and of Redis; undefined where nothing can be pinned. */
export const cores = canPin ? [1] : undefined

/** Keeps this process off the core of the application. */
export function moveAside(): void {
  if (cores !== undefined) moveTo(process.pid, STORM_CORES)
}

/** Redis and one worker. */
export async function startQueue(keeper: Keeper, dir: string) {
  const logFile = join(dir, 'redis.log')
  const data = { dir: join(dir, 'redis'), logFile, durable: false, password: '', preferredPort: 0 }
  const redis = await startRedis({ keeper, say: console.log, ...data })
  if (cores !== undefined) moveTo(redis.pid(), cores)
  const env = { REDIS_URL: redis.url, SPILLWAY_SEAL_KEYS: newSealKey() }
  const worker = await startWorker({ keeper, cores, env: { ...env, OPS_PORT: '0', WORKER_CONCURRENCY: '1' } })
  return {
    /** What an application needs to use it. */
    env,
    async close(): Promise<void> {
      await worker.close()
      await redis.close()
    },
  }
}
