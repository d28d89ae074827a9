/**
 * Cancellation of jobs that no request waits for any more. While Redis does not answer, a cancellation is retried until the job's
 * deadline, so that time-outs leave no work behind.
 */

import { removeWaitingJob } from '../jobs/jobs.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import type { JobRef } from '../wire/reply.js'

const RETRY_INTERVAL_MS = 500

export interface Cancellation {
  /** True when the job was removed before a worker took it. */
  cancel(job: JobRef): Promise<boolean>
  close(): void
}

export interface CancellationOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
}

export function createCancellation({ redis, prefix, clock }: CancellationOptions): Cancellation {
  const pending = new Map<string, JobRef>()
  let retrying = false

  async function cancel(job: JobRef): Promise<boolean> {
    try {
      const removed = await removeWaitingJob(redis, prefix, job.id)
      pending.delete(job.id)
      return removed
    } catch {
      pending.set(job.id, job)
      return false
    }
  }

  /** Retries one after the other, until one fails again. */
  async function retry(): Promise<void> {
    if (retrying || redis.status !== 'ready') return
    retrying = true
    for (const job of [...pending.values()]) {
      if (!(await cancel(job)) && pending.has(job.id)) break
    }
    retrying = false
  }

  /** Bounds the memory during a long outage: after its deadline a job is dropped by workers anyway. */
  function forgetExpired(): void {
    for (const job of pending.values()) if (clock.now() >= job.deadline) pending.delete(job.id)
  }

  const timer = setInterval(() => {
    forgetExpired()
    void retry()
  }, RETRY_INTERVAL_MS)
  timer.unref()

  return { cancel, close: () => clearInterval(timer) }
}
