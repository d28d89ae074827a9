/**
 * Watches for jobs that nothing else ends:
 * - *malformed* jobs, which BullMQ cannot process;
 * - *orphaned* jobs: Redis made them active for this worker, but the reply was lost, or came when
 *   the worker had stopped taking jobs. Stall recovery would wait until their locks expire;
 * - *finished* jobs, a sample of which operators see for minutes. BullMQ deletes old ones only when
 *   another job finishes. The capacity of a killed worker goes with them.
 */
import type { Logger } from '@spillway/common/log'
import { sweepCapacity } from '@spillway/queue/jobs/capacity'
import { type LockedJob, lockedJobs, openQueue, readJob } from '@spillway/queue/jobs/jobs'
import { MalformedJobs } from '@spillway/queue/jobs/malformed-jobs'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { ErrorCode, type Job } from 'bullmq'
import type { WorkerMetrics } from '../ops/metrics.js'

/** At most 500 completed and 500 failed jobs, for ten minutes. */
export const KEEP_FINISHED = { age: 600, count: 500 }
/** Completed jobs kept for operators, a second: a flood leaves a sample. */
const KEPT_A_SECOND = 50
/** BullMQ's codes of a job that another worker has, or has ended. */
const LOCK_CODES: ReadonlySet<unknown> = new Set([
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
])

const SWEEP_INTERVAL_MS = 60_000
/** Upper bound from Redis's reply to a job in hand (ms): the event loop never hashes. */
const SETTLE_MS = 50

interface JobWatchOptions {
  redis: RedisConnection
  prefix: string
  watch: RedisWatch
  consumerId: string
  isInHand(jobId: string): boolean
  log: Logger
  metrics: Pick<WorkerMetrics, 'jobs' | 'requeued'>
  /** Of finished jobs. */
  keepMs?: number
  sweepEveryMs?: number
}

export class JobWatch {
  readonly #options: JobWatchOptions
  readonly #queue: ReturnType<typeof openQueue>
  readonly #malformed: MalformedJobs
  readonly #sweeping: NodeJS.Timeout
  #settling: NodeJS.Timeout | undefined
  #kept = { second: 0, jobs: 0 }
  #isClosed = false

  constructor(options: JobWatchOptions) {
    const { redis, metrics, sweepEveryMs = SWEEP_INTERVAL_MS } = options
    this.#options = options
    this.#queue = openQueue(options)
    this.#malformed = new MalformedJobs({
      ...{ ...options, queue: this.#queue },
      removed: (count) => metrics.jobs.inc({ job: 'unknown', outcome: 'forged' }, count),
    })
    this.#sweeping = setInterval(() => this.#sweep(), sweepEveryMs).unref()
    // A Cluster's nodes come and go without events: there, stall recovery takes up orphaned jobs.
    redis.on('ready', this.#onReady)
  }

  /** Looks for malformed jobs after an error of BullMQ, unless it is of a lock. */
  suspect(error: Error): void {
    const isOfLock = ('code' in error && LOCK_CODES.has(error.code)) || error.message.startsWith('could not renew lock')
    if (!isOfLock) this.#malformed.suspect(error)
  }

  /** Has a job deleted when it is completed, unless it is of the sample. */
  keepSample(job: Job): void {
    const second = Math.floor(performance.now() / 1_000)
    if (this.#kept.second !== second) this.#kept = { second, jobs: 0 }
    if (this.#kept.jobs < KEPT_A_SECOND) this.#kept.jobs += 1
    else job.opts.removeOnComplete = true
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
    this.#malformed.close()
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

  /** BullMQ moves no job with another lock: a job that has ended or was taken over stays. */
  async #requeue({ id, token }: LockedJob): Promise<void> {
    const { metrics, log } = this.#options
    try {
      const job = await readJob(this.#queue, id)
      if (job === undefined || job === 'malformed') return
      await job.moveToWait(token)
      metrics.requeued.inc()
      log.warn({ jobId: id }, 'orphaned job requeued: the reply with it was lost')
    } catch (error) {
      this.#tolerate(error)
    }
  }

  #tolerate(error: unknown): void {
    this.#options.log.warn({ err: error }, 'cannot requeue orphaned jobs; BullMQ will recover them')
  }

  #sweep(): void {
    const { redis, prefix, log, keepMs = KEEP_FINISHED.age * 1_000 } = this.#options
    for (const state of ['completed', 'failed'] as const)
      this.#queue
        .clean(keepMs, KEEP_FINISHED.count, state)
        .catch((error: unknown) => log.warn({ err: error }, 'old finished jobs could not be deleted'))
    sweepCapacity(redis, prefix).catch((error: unknown) =>
      log.warn({ err: error }, 'capacity entries of dead workers could not be deleted'),
    )
  }
}
