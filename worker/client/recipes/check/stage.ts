// Where the recipes are compared: an application with all that it needs on one core, the storm on another.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Keeper } from '@spillway/local/processes/keeper'
import { canPin, moveTo } from '@spillway/local/processes/pinning'
import { machineTime } from '@spillway/local/processes/processor-time'
import { programsDir } from '@spillway/local/processes/repository'
import { startRedis } from '@spillway/local/services/redis'
import { newSealKey, startWorker } from '@spillway/local/testing'

/** Of the storm. */
const STORM_CORES = [0]
/** Of the application, of what hashes for it, and of Redis; undefined where nothing can be pinned. */
export const cores = canPin ? [1] : undefined

const LOOK_FOR_MS = 1_000

/** Keeps this process off the core of the application. */
export function moveAside(): void {
  if (cores !== undefined) moveTo(process.pid, STORM_CORES)
}

/** Per cent of all processor time that others take or steal while nothing of ours has work; undefined where it cannot be read. */
export async function takenByOthers(): Promise<number | undefined> {
  const before = machineTime()
  await sleep(LOOK_FOR_MS)
  const after = machineTime()
  if (before === undefined || after === undefined) return undefined
  const taken = after.busyMs - before.busyMs + after.stolenMs - before.stolenMs
  return (100 * taken) / (taken + after.idleMs - before.idleMs)
}

/** Redis and one worker. */
export async function startQueue(keeper: Keeper, dir: string) {
  const logFile = join(dir, 'redis.log')
  const data = { dir: join(dir, 'redis'), logFile, durable: false, password: '', preferredPort: 0 }
  const redis = await startRedis({ keeper, programsDir, say: console.log, ...data })
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
