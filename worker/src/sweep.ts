/**
 * Finished jobs are kept for operators to look at, few and not for long. BullMQ forgets old ones only when another one
 * finishes, so on a queue that has gone quiet they would stay: here they are swept out all the same.
 */
import type { Logger } from './log.js'
import { openQueue } from './open-queue.js'
import type { RedisConnection } from './redis.js'

/** Of each kind, completed and failed: 500 at most, for ten minutes; 2.2 MiB for both together (`pnpm measure:kept-jobs`). */
export const KEEP_FINISHED = { age: 600, count: 500 }

const SWEEP_INTERVAL_MS = 60_000

export interface SweepOptions {
  redis: RedisConnection
  prefix: string
  log: Logger
  /** How long finished jobs are kept, in milliseconds. */
  keepMs?: number
  everyMs?: number
}

/** Starts sweeping; close() stops it. Any number of workers may do so at once. */
export function sweepFinishedJobs(options: SweepOptions): { close(): Promise<void> } {
  const { log, keepMs = KEEP_FINISHED.age * 1_000, everyMs = SWEEP_INTERVAL_MS } = options
  const queue = openQueue(options)

  async function sweep(): Promise<void> {
    for (const state of ['completed', 'failed'] as const) await queue.clean(keepMs, KEEP_FINISHED.count, state)
  }

  const timer = setInterval(() => {
    sweep().catch((error: unknown) => log.warn({ err: error }, 'finished jobs could not be swept out'))
  }, everyMs)
  timer.unref()

  return {
    async close() {
      clearInterval(timer)
      await queue.close()
    },
  }
}
