/**
 * Watches for jobs that no other part ends:
 * - *orphaned* jobs: Redis made them active for this worker, but the reply was lost, or came when the
 *   worker had stopped taking jobs, or the worker could not give them back. Stall recovery would wait
 *   until their locks expire;
 * - *finished* jobs: operators see the last ones for minutes. The capacity of a killed worker goes with them.
 */
import type { Logger } from '@spillway/common/log'
import { type LockedJob, lockedJobs, openQueue, readJob } from '@spillway/queue/bullmq'
import { sweepCapacity } from '@spillway/queue/capacity'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import type { WorkerMetrics } from '../ops/metrics.js'

/** At most 500 completed and 500 failed jobs, and each for ten minutes: the sweep deletes older ones. */
export const KEEP_FINISHED = { count: 500 }
const KEEP_MS = 600_000
const SWEEP_INTERVAL_MS = 60_000
/** Upper bound from Redis's reply to a job in hand (ms): the event loop never hashes. */
const SETTLE_MS = 50

interface JobWatchOptions {
  redis: RedisConnection
  prefix: string
  watch: RedisWatch
  clock: RedisClock
  consumerId: string
  isInHand(jobId: string): boolean
  log: Logger
  metrics: WorkerMetrics
  /** How long finished jobs are kept. */
  keepMs?: number
  sweepEveryMs?: number
}

export class JobWatch {
  readonly #options: JobWatchOptions
  readonly #queue: ReturnType<typeof openQueue>
  readonly #sweeping: NodeJS.Timeout
  #settling: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: JobWatchOptions) {
    const { redis, sweepEveryMs = SWEEP_INTERVAL_MS } = options
    this.#options = options
    this.#queue = openQueue(options)
    this.#sweeping = setInterval(() => this.#sweep(), sweepEveryMs).unref()
    // A Cluster's nodes come and go without events: there, stall recovery takes up orphaned jobs.
    redis.on('ready', this.#onReady)
  }

  /** Requeues the orphaned jobs of a worker that takes no more jobs. */
  async requeueOrphaned(): Promise<void> {
    for (const job of await this.#suspects()) await this.#requeue(job)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.redis.off('ready', this.#onReady)
    clearTimeout(this.#settling)
    clearInterval(this.#sweeping)
    await this.#queue.close()
  }

  #onReady = (): void => void this.#lookForOrphaned().catch((error: unknown) => this.#tolerate(error))

  /** Replies come in order: a job that was taken before this reading is in hand soon. */
  async #lookForOrphaned(): Promise<void> {
    const suspects = await this.#suspects()
    if (this.#isClosed || suspects.length === 0) return
    clearTimeout(this.#settling)
    this.#settling = setTimeout(() => {
      for (const job of suspects) if (!this.#options.isInHand(job.id)) void this.#requeue(job)
    }, SETTLE_MS)
  }

  async #suspects(): Promise<LockedJob[]> {
    const { redis, prefix, consumerId, isInHand } = this.#options
    return (await lockedJobs(redis, prefix, consumerId)).filter(({ id }) => !isInHand(id))
  }

  /** BullMQ does not move a job with another lock: jobs that ended or were taken over stay. */
  async #requeue({ id, token }: LockedJob): Promise<void> {
    const { metrics, log } = this.#options
    try {
      const job = await readJob(this.#queue, id)
      if (job === undefined) return
      await job.moveToWait(token)
      metrics.requeued.inc()
      log.warn({ jobId: id }, 'orphaned job requeued: it was active for this worker, which did not have it in hand')
    } catch (error) {
      this.#tolerate(error)
    }
  }

  #tolerate(error: unknown): void {
    this.#options.log.warn({ err: error }, 'cannot requeue orphaned jobs; BullMQ will recover them')
  }

  #sweep(): void {
    const { redis, prefix, clock, log, keepMs = KEEP_MS } = this.#options
    for (const state of ['completed', 'failed'] as const)
      this.#queue
        .clean(keepMs, KEEP_FINISHED.count, state)
        .catch((error: unknown) => log.warn({ err: error }, 'old finished jobs could not be deleted'))
    sweepCapacity(redis, prefix, clock.now()).catch((error: unknown) =>
      log.warn({ err: error }, 'capacity entries of dead workers could not be deleted'),
    )
  }
}
