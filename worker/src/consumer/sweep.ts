/**
 * Periodic deletion of old data that nothing else deletes. A few finished jobs are kept for operators, for minutes. BullMQ deletes old ones
 * only when another job finishes, so in an idle queue they would stay. The capacity entry of a killed worker would stay as long as other
 * workers renew the hash.
 */

import type { Logger } from '@spillway/common/log'
import { sweepCapacity } from '@spillway/queue/jobs/capacity'
import { openQueue } from '@spillway/queue/jobs/open-queue'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'

/** At most 500 completed and 500 failed jobs, for ten minutes. */
export const KEEP_FINISHED = { age: 600, count: 500 }

const SWEEP_INTERVAL_MS = 60_000

export interface SweepOptions {
  redis: RedisConnection
  prefix: string
  log: Logger
  watch: RedisWatch
  /** How long finished jobs are kept, in milliseconds. */
  keepMs?: number
  /** How long a capacity entry is kept without being renewed, in seconds. */
  keepCapacityS?: number
  everyMs?: number
}

/** Starts sweeping, until closed. Any number of workers may do so at once. */
export function startSweep(options: SweepOptions): { close(): Promise<void> } {
  const { redis, prefix, log, everyMs = SWEEP_INTERVAL_MS } = options
  const { keepMs = KEEP_FINISHED.age * 1_000, keepCapacityS } = options
  const queue = openQueue(options)

  async function sweepJobs(): Promise<void> {
    for (const state of ['completed', 'failed'] as const) await queue.clean(keepMs, KEEP_FINISHED.count, state)
  }

  const timer = setInterval(() => {
    sweepJobs().catch((error: unknown) => log.warn({ err: error }, 'old finished jobs could not be deleted'))
    sweepCapacity(redis, prefix, keepCapacityS).catch((error: unknown) =>
      log.warn({ err: error }, 'capacity entries of dead workers could not be deleted'),
    )
  }, everyMs)
  timer.unref()

  return {
    async close() {
      clearInterval(timer)
      await queue.close()
    },
  }
}
