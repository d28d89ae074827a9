/** BullMQ's consumer of the queue: its settings, and how it processes jobs. */
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import type { Tracing } from '@spillway/common/tracing'
import { closeConsumer, retakeLock } from '@spillway/queue/bullmq'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { isJobData, isJobResult, type JobResult, QUEUE_NAME } from '@spillway/queue/wire/job'
import { ErrorCode, type Job, Worker } from 'bullmq'
import type { CapacityPublisher } from './capacity-publisher.js'
import { JobWatch, KEEP_FINISHED } from './job-watch.js'
import { announceSkip, ForgedJobError, type JobParts, processJob } from './process-job.js'
import type { JobsInHand } from './slots.js'

/**
 * A killed worker's jobs run elsewhere within LOCK + 3 × STALLED_CHECK, less than three seconds:
 * the lock expires, two checks pass, and the first is late if it was the dead worker's turn. A
 * worker that gets no core for up to LOCK − RENEWAL keeps its jobs.
 */
const LOCK_MS = 2_000
const STALLED_CHECK_MS = 300
/**
 * While no worker has a job in hand. Idle workers notice a job in hand within a second. A check
 * keeps others from checking for this time. Both together are not longer than LOCK.
 */
const IDLE_CHECK_MS = 1_000
/** BullMQ checks locks every half of this time, and renews locks that are older than that. */
const RENEWAL_MS = 400
/** Blocking read of an idle worker (s), below its connection's socket timeout. */
const IDLE_READ_S = 2.5
/** How long after a broken connection the queue is read again. */
const READ_RETRY_MS = 250
/** Practically unlimited: jobs are pure functions, and their deadlines end endless retries. */
const STALLS_ALLOWED = 1_000

interface ConsumerOptions extends JobParts {
  watch: RedisWatch
  name: string
  jobsInHand: JobsInHand
  capacity: CapacityPublisher
  tracing: Tracing | undefined
}

/** Takes no job before `run()`: a worker that fails to start must not hold jobs. */
export class Consumer {
  readonly #options: ConsumerOptions
  readonly #worker: Worker
  readonly #jobWatch: JobWatch
  readonly #inHand = new Map<string, { job: Job; done: Promise<JobResult> }>()
  readonly #lockLost: ThrottledWarning
  #hasBegun = false

  constructor(options: ConsumerOptions) {
    const { redis, prefix, watch, clock, name, jobsInHand, log, metrics, tracing } = options
    this.#options = options
    this.#worker = new Worker(QUEUE_NAME, (job: Job) => this.#handle(job), {
      connection: redis,
      prefix,
      name,
      concurrency: jobsInHand.limit(),
      autorun: false,
      lockDuration: LOCK_MS,
      lockRenewTime: RENEWAL_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: STALLS_ALLOWED,
      drainDelay: IDLE_READ_S,
      runRetryDelay: READ_RETRY_MS,
      removeOnComplete: KEEP_FINISHED,
      removeOnFail: KEEP_FINISHED,
      ...(tracing ? { telemetry: tracing.telemetry } : {}),
    })
    this.#jobWatch = new JobWatch({
      ...{ redis, prefix, watch, clock, consumerId: this.#worker.id, log, metrics },
      isInHand: (jobId) => this.#inHand.has(jobId),
    })
    this.#lockLost = new ThrottledWarning(log, 'lock of a job in hand lost')
    this.#listen()
  }

  async run(): Promise<void> {
    const { log } = this.#options
    await this.#worker.waitUntilReady()
    this.#hasBegun = true
    this.#worker.run().catch((error: unknown) => log.error({ err: error }, 'consumer stopped reading the queue'))
  }

  takesJobs(): boolean {
    return this.#worker.isRunning() && !this.#worker.isPaused()
  }

  /** Takes no jobs while the keys do not fit. Call it repeatedly. */
  keysFit(fit: boolean): void {
    const worker = this.#worker
    if (!this.#hasBegun || worker.isPaused() !== fit) return
    const changed = fit ? worker.resume() : worker.pause(true)
    changed.catch((error: unknown) => this.#options.log.error({ err: error }, 'consumer not paused or resumed'))
  }

  queueRead(waiting: number, active: number): void {
    this.#options.jobsInHand.queueRead(waiting)
    // BullMQ reads this option after each check.
    this.#worker.opts.stalledInterval = active === 0 ? IDLE_CHECK_MS : STALLED_CHECK_MS
    this.#limitChanged()
  }

  /** Stops taking jobs, and resolves when those in hand are finished. */
  finish(): Promise<void> {
    return closeConsumer(this.#worker, { redis: this.#options.redis, isIdle: this.#inHand.size === 0 })
  }

  /**
   * After `finish()`: moves the jobs in hand, then orphaned jobs, back to the front of the queue. A
   * job that another worker has taken cannot be moved.
   */
  async requeue(): Promise<void> {
    const { log, metrics } = this.#options
    const requeuing = [...this.#inHand.values()].toReversed().map(async ({ job }) => {
      // Otherwise, a renewal that fails because the job has moved would take its lock again.
      this.#inHand.delete(job.id ?? '')
      try {
        await job.moveToWait(job.token)
        metrics.requeued.inc()
        log.warn(idsOf(job), 'job requeued unfinished')
      } catch (error) {
        log.warn({ ...idsOf(job), err: error }, 'job could not be requeued')
      }
    })
    await Promise.all(requeuing)
    await this.#jobWatch.requeueOrphaned()
  }

  /** Stops watching for orphaned jobs. */
  close(): Promise<void> {
    return this.#jobWatch.close()
  }

  #listen(): void {
    const { watch, capacity, log, metrics } = this.#options
    this.#worker.on('lockRenewalFailed', (jobIds) => {
      for (const id of jobIds) this.#retake(id)
    })
    this.#worker.on('error', (error) => {
      if (!isOfLock(error)) watch.queueFailed(error)
    })
    this.#worker.on('completed', ({ id }, result) => {
      if (!isJobResult(result) || result.outcome !== 'skipped' || id === undefined) return
      announceSkip(id, this.#options).catch((error: unknown) =>
        log.debug({ err: error, jobId: id }, 'a skip was not announced'),
      )
    })
    this.#worker.on('failed', (job, error) => {
      capacity.finished('failed')
      const forged = error instanceof ForgedJobError
      const code = forged ? error.code : 'failed'
      log.error({ ...(job && idsOf(job)), code, reason: error.message }, 'job failed')
    })
    this.#worker.on('stalled', (jobId) => {
      metrics.stalled.inc()
      log.warn({ jobId }, 'job taken over from a worker that stopped answering')
    })
  }

  #limitChanged(): void {
    this.#worker.concurrency = this.#options.jobsInHand.limit()
  }

  /** A job may be taken again while it is in hand, if its lock was lost: it is hashed only once. */
  #handle(job: Job): Promise<JobResult> {
    const { id = '' } = job
    const done = this.#inHand.get(id)?.done ?? this.#perform(job)
    this.#inHand.set(id, { job, done })
    return done
  }

  async #perform(job: Job): Promise<JobResult> {
    const { tracing, log, jobsInHand, liveness, capacity } = this.#options
    liveness.started()
    // The trace of a job is active until the first await.
    const traces = tracing?.telemetry.contextManager
    const trace = traces?.active()
    try {
      const result = await processJob(job, {
        ...this.#options,
        log: tracing ? log.child({ traceId: tracing.traceId() }) : log,
        ...(tracing && traces
          ? { inSpan: (name, work) => traces.with(trace, () => tracing.inSpan(name, {}, work)) }
          : {}),
        taken: (queueWaitMs) => {
          jobsInHand.taken(queueWaitMs)
          this.#limitChanged()
        },
      })
      capacity.finished(result.outcome)
      return result
    } finally {
      this.#inHand.delete(job.id ?? '')
      liveness.finished()
    }
  }

  /** Retakes a lost lock unless another worker has it: otherwise the job would be hashed twice. */
  #retake(id: string): void {
    const { redis, prefix, metrics } = this.#options
    const { token } = this.#inHand.get(id)?.job ?? {}
    if (token === undefined) return
    metrics.locksLost.inc()
    retakeLock(redis, prefix, { id, token }, LOCK_MS).then(
      () => this.#lockLost.warn(new Error('it was not renewed in time'), { jobId: id }),
      (error: unknown) => this.#lockLost.warn(error, { jobId: id }),
    )
  }
}

/** BullMQ's error codes for a job that another worker has taken, or that has ended. */
const LOCK_CODES: ReadonlySet<unknown> = new Set([
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
])

/** A lost lock is not a failure of the queue: it is retaken, or another worker has the job. */
function isOfLock(error: Error): boolean {
  return ('code' in error && LOCK_CODES.has(error.code)) || error.message.startsWith('could not renew lock')
}

/** The ids of a job and its request, for log lines. Its data is not trusted. */
function idsOf({ id, data }: Job<unknown>) {
  return { jobId: id, requestId: isJobData(data) ? data.requestId : undefined }
}
