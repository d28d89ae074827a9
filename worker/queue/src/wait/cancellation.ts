/**
 * Cancellation of jobs that no request waits for any more. While Redis does not answer, a
 * cancellation is retried until the job's deadline, so that time-outs leave no work behind.
 */

import { removeWaitingJob } from '../jobs/jobs.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import type { JobRef } from '../wire/reply.js'

const RETRY_INTERVAL_MS = 500

interface CancellationOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
}

export class Cancellation {
  readonly #options: CancellationOptions
  readonly #pending = new Map<string, JobRef>()
  readonly #timer: NodeJS.Timeout
  #isRetrying = false

  constructor(options: CancellationOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#retry(), RETRY_INTERVAL_MS).unref()
  }

  /** True when the job was removed before a worker took it. */
  async cancel(job: JobRef): Promise<boolean> {
    const { redis, prefix } = this.#options
    try {
      const removed = await removeWaitingJob(redis, prefix, job.id)
      this.#pending.delete(job.id)
      return removed
    } catch {
      this.#pending.set(job.id, job)
      return false
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Retries one after the other, until one fails again. */
  async #retry(): Promise<void> {
    const { redis, clock } = this.#options
    // Bounds the memory during a long outage: after its deadline a job is dropped by workers
    // anyway.
    for (const { id, deadline } of this.#pending.values()) if (clock.now() >= deadline) this.#pending.delete(id)
    if (this.#isRetrying || redis.status !== 'ready') return
    this.#isRetrying = true
    for (const job of [...this.#pending.values()]) {
      if (!(await this.cancel(job)) && this.#pending.has(job.id)) break
    }
    this.#isRetrying = false
  }
}
