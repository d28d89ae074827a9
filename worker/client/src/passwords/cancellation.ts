/**
 * Taking jobs back that no one waits for. What cannot be taken back now, because Redis does not answer, is tried again until
 * the job would be dropped anyway: no time-out leaves work behind.
 */

import type { JobRef } from '../protocol/reply.js'
import { removeWaitingJob } from '../queue/remove-waiting-job.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'

const RETRY_INTERVAL_MS = 500

export interface Cancellation {
  /** True when the job had not begun. */
  cancel(job: JobRef): Promise<boolean>
  close(): void
}

export interface CancellationOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
}

export function createCancellation({ redis, prefix, clock }: CancellationOptions): Cancellation {
  const unanswered = new Map<string, JobRef>()
  let retrying = false

  async function cancel(job: JobRef): Promise<boolean> {
    try {
      const removed = await removeWaitingJob(redis, prefix, job.id)
      unanswered.delete(job.id)
      return removed
    } catch {
      unanswered.set(job.id, job)
      return false
    }
  }

  /** One after the other, up to the first that is not answered either. */
  async function retry(): Promise<void> {
    if (retrying || redis.status !== 'ready') return
    retrying = true
    for (const job of [...unanswered.values()]) {
      if (!(await cancel(job)) && unanswered.has(job.id)) break
    }
    retrying = false
  }

  /** Also while Redis is away, however long that is: there may be many. */
  function forgetDropped(): void {
    for (const job of unanswered.values()) if (clock.now() >= job.deadline) unanswered.delete(job.id)
  }

  const timer = setInterval(() => {
    forgetDropped()
    void retry()
  }, RETRY_INTERVAL_MS)

  return { cancel, close: () => clearInterval(timer) }
}
