/**
 * What nobody else removes, swept out now and then. Finished jobs are kept for operators to look at, few and not for long;
 * BullMQ forgets old ones only when another one finishes, so on a queue that has gone quiet they would stay. And the capacity
 * of a worker that was killed stays among that of the living, who renew the hash.
 */

import { CAPACITY_KEY_TTL_S, capacityKey, SWEEP_CAPACITY } from '@spillway/client/protocol/capacity'
import { openQueue } from '@spillway/client/queue/open-queue'
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { RedisWatch } from '@spillway/client/redis/watch'
import type { Logger } from '../process/log.js'

/** Of each kind, completed and failed: 500 at most, for ten minutes; 2.0 MiB for both together (`pnpm measure:kept-jobs`). */
export const KEEP_FINISHED = { age: 600, count: 500 }

const SWEEP_INTERVAL_MS = 60_000

export interface SweepOptions {
  redis: RedisConnection
  prefix: string
  log: Logger
  watch: RedisWatch
  /** How long finished jobs are kept, in milliseconds. */
  keepMs?: number
  /** How long a worker's capacity is kept that is not renewed, in seconds. */
  keepCapacityS?: number
  everyMs?: number
}

/** Starts sweeping; close() stops it. Any number of workers may do so at once. */
export function startSweep(options: SweepOptions): { close(): Promise<void> } {
  const { redis, prefix, log, everyMs = SWEEP_INTERVAL_MS } = options
  const { keepMs = KEEP_FINISHED.age * 1_000, keepCapacityS = CAPACITY_KEY_TTL_S } = options
  const queue = openQueue(options)

  async function sweepJobs(): Promise<void> {
    for (const state of ['completed', 'failed'] as const) await queue.clean(keepMs, KEEP_FINISHED.count, state)
  }

  async function sweepCapacity(): Promise<void> {
    await redis.eval(SWEEP_CAPACITY, 1, capacityKey(prefix), keepCapacityS)
  }

  const timer = setInterval(() => {
    sweepJobs().catch((error: unknown) => log.warn({ err: error }, 'finished jobs could not be swept out'))
    sweepCapacity().catch((error: unknown) => log.warn({ err: error }, 'the capacity of dead workers stays'))
  }, everyMs)
  timer.unref()

  return {
    async close() {
      clearInterval(timer)
      await queue.close()
    },
  }
}
