/** BullMQ's consumer of the queue: its settings, and how it processes jobs. */
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import type { Tracing } from '@spillway/common/tracing'
import { renewLocksOfJobsAlone, takeMoreJobs } from '@spillway/queue/inside/bullmq'
import { countOtherWorkers } from '@spillway/queue/jobs/capacity'
import { closeConsumer, retakeLock } from '@spillway/queue/jobs/jobs'
import { passOver } from '@spillway/queue/jobs/ticket'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import {
  BEHIND_PRIORITY,
  DEFERRED_PRIORITY,
  isJobData,
  type JobData,
  type JobResult,
  QUEUE_NAME,
} from '@spillway/queue/wire/job'
import { SEAL_KEYS } from '@spillway/queue/wire/seal'
import { DelayedError, type Job, Worker } from 'bullmq'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { CapacityPublisher } from './capacity-publisher.js'
import { JobWatch, KEEP_FINISHED } from './job-watch.js'
import type { Liveness } from './liveness.js'
import { ForgedJobError, type ProcessOptions, processJob } from './process-job.js'
import type { SlotShare } from './slots.js'

/**
 * A killed worker's jobs run elsewhere within LOCK + 3 × STALLED_CHECK, less than three seconds:
 * the lock expires, two checks pass, and the first is late when it was the dead worker's turn. A
 * worker that got no core for LOCK − RENEWAL keeps its jobs.
 */
const LOCK_MS = 2_350
const STALLED_CHECK_MS = 200
/** Interval while no worker has a job. Workers notice a new job within 500 ms. */
const QUIET_STALLED_CHECK_MS = 1_000
/** BullMQ renews a lock that is older than half of this, and looks as often. */
const RENEWAL_MS = 300
/** Blocking read of an idle worker (s), below its connection's socket timeout. */
const IDLE_READ_S = 2
/** How long after a broken connection the queue is read again. */
const READ_RETRY_MS = 250
/** How long a job that does not open is left to other workers. */
const LEFT_FOR_MS = 500
/** Practically unlimited: jobs are pure functions, and their deadlines end endless retries. */
const STALLS_ALLOWED = 1_000

export interface ConsumerOptions
  extends Omit<ProcessOptions, 'taken' | 'isTooLate' | 'hashed' | 'handBack' | 'beside'> {
  redis: RedisConnection
  prefix: string
  watch: RedisWatch
  workerId: string
  name: string
  share: SlotShare
  liveness: Pick<Liveness, 'started' | 'finished'>
  capacity: Pick<CapacityPublisher, 'finished'>
  estimate: Pick<CapacityEstimate, 'finished' | 'answerMs'>
  /** Of all queues. */
  inHand(): number
  tracing: Tracing | undefined
}

/** Takes no job before `run()`: a worker that fails to start must not hold jobs. */
export class Consumer {
  readonly #options: ConsumerOptions
  readonly #worker: Worker
  readonly #jobWatch: JobWatch
  readonly #inHand = new Map<string, { job: Job; done: Promise<JobResult> }>()
  readonly #leftToOthers: ThrottledWarning
  readonly #lockLost: ThrottledWarning
  #asking = 0

  constructor(options: ConsumerOptions) {
    const { redis, prefix, watch, name, share, log, metrics, tracing } = options
    this.#options = options
    this.#worker = new Worker(QUEUE_NAME, (job: Job) => this.#handle(job), {
      connection: redis,
      prefix,
      name,
      concurrency: share.limit(),
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
    renewLocksOfJobsAlone(this.#worker)
    share.onChange(() => this.#limitChanged())
    this.#jobWatch = new JobWatch({
      ...{ redis, prefix, watch, consumerId: this.#worker.id, log, metrics },
      isInHand: (jobId) => this.#inHand.has(jobId),
    })
    this.#leftToOthers = new ThrottledWarning(log, 'jobs do not open here: they are left to other workers')
    this.#lockLost = new ThrottledWarning(log, 'lock of a job in hand lost')
    this.#listen()
  }

  async run(): Promise<void> {
    const { log } = this.#options
    await this.#worker.waitUntilReady()
    this.#worker.run().catch((error: unknown) => log.error({ err: error }, 'consumer stopped reading the queue'))
  }

  isRunning(): boolean {
    return this.#worker.isRunning()
  }

  /** Jobs in hand that wait for another system's answer, and take no slot. */
  asking(): number {
    return this.#asking
  }

  /** @param active jobs in hand of all workers */
  queueRead(active: number): void {
    this.#worker.opts.stalledInterval = active + this.#inHand.size > 0 ? STALLED_CHECK_MS : QUIET_STALLED_CHECK_MS
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

  /** Stops watching for malformed and orphaned jobs. */
  close(): Promise<void> {
    return this.#jobWatch.close()
  }

  #listen(): void {
    const { watch, capacity, log, metrics } = this.#options
    this.#worker.on('lockRenewalFailed', (jobIds) => {
      for (const id of jobIds) this.#retake(id)
    })
    this.#worker.on('error', (error) => {
      if (!watch.isLogged(error)) this.#jobWatch.suspect(error)
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
    const limit = this.#options.share.limit() + this.#asking
    const isMore = limit > this.#worker.concurrency
    this.#worker.concurrency = limit
    if (isMore) takeMoreJobs(this.#worker)
  }

  /** A job whose lock was lost may be taken again while it is in hand: it is hashed once. */
  #handle(job: Job): Promise<JobResult> {
    const { id = '' } = job
    const done = this.#inHand.get(id)?.done ?? this.#perform(job)
    this.#inHand.set(id, { job, done })
    return done
  }

  async #perform(job: Job): Promise<JobResult> {
    const { tracing, log, share, capacity, estimate } = this.#options
    this.#begun()
    // The trace of a job is active until the first await alone.
    const traces = tracing?.telemetry.contextManager
    const trace = traces?.active()
    try {
      if (await this.#isPassedOver(job)) throw new MovedElsewhere()
      const begin = () =>
        processJob(job, {
          ...this.#options,
          log: tracing ? log.child({ traceId: tracing.traceId() }) : log,
          taken: (queueWaitMs) => share.taken(queueWaitMs),
          isTooLate: (leftMs, foretoldMs) => this.#isTooLate(leftMs, foretoldMs),
          hashed: (ms, foretoldMs) => estimate.finished(ms, foretoldMs),
          beside: (answer) => this.#beside(answer),
          handBack: (data) => this.#leaveToOthers(job, data),
        })
      const result = await (traces?.with(trace, begin) ?? begin())
      if (result === undefined) throw new MovedElsewhere()
      capacity.finished(result.outcome)
      this.#jobWatch.keepSample(job)
      return result
    } finally {
      this.#inHand.delete(job.id ?? '')
      this.#ended()
    }
  }

  #begun(): void {
    this.#options.liveness.started()
    this.#options.share.started()
  }

  #ended(): void {
    this.#options.liveness.finished()
    this.#options.share.finished()
  }

  /**
   * Leaves a job that does not open to others; false where another tried. It may come back here
   * while the others hash: its deadline ends that. Where Redis does not say whether there are
   * others, the job waits until its lock has expired.
   */
  async #leaveToOthers(job: Job, data: JobData): Promise<boolean> {
    const { redis, prefix, workerId } = this.#options
    if (data.unopenedBy !== undefined && data.unopenedBy !== workerId) return false
    try {
      if ((await countOtherWorkers(redis, prefix, workerId)) === 0) return false
      await job.updateData({ ...data, unopenedBy: workerId })
      await job.moveToDelayed(Date.now() + LEFT_FOR_MS, job.token)
      this.#leftToOthers.warn(new Error(`compare ${SEAL_KEYS} with theirs`), { facts: { jobId: job.id } })
    } catch (error) {
      this.#leftToOthers.warn(error, { facts: { jobId: job.id } })
    }
    return true
  }

  /** Frees the slot of a job while it waits for another system's answer. */
  async #beside<T>(answer: Promise<T>): Promise<T> {
    this.#asking += 1
    this.#ended()
    try {
      return await answer
    } finally {
      this.#asking -= 1
      this.#begun()
    }
  }

  /** A job alone in hand is always begun: otherwise a wrong prediction would stay. */
  #isTooLate(leftMs: number, foretoldMs: number | undefined): boolean {
    const others = this.#options.inHand() - 1
    return others > 0 && this.#options.estimate.answerMs(others, foretoldMs) > leftMs
  }

  /**
   * Nothing is hashed for an absent client, which only deferred jobs and jobs behind can have.
   * Where Redis does not say, a deferred job is hashed; a job that is behind waits until its lock
   * has expired, because guesses must not be hashed unseen.
   */
  async #isPassedOver({ id, token, opts, data }: Job): Promise<boolean> {
    const { redis, prefix, metrics } = this.#options
    const deadline: unknown = Object(data).deadline
    const isBehind = opts.priority === BEHIND_PRIORITY
    if (!isBehind && opts.priority !== DEFERRED_PRIORITY) return false
    if (id === undefined || token === undefined || !Number.isSafeInteger(deadline)) return false
    const passed = await passOver(redis, prefix, { id, deadline: Number(deadline) }, token, isBehind).catch(
      () => undefined,
    )
    if (passed) metrics.tickets.inc({ event: 'passed_over' })
    return passed ?? isBehind
  }

  /** Takes a lost lock again, unless another worker has it: the job would be hashed twice. */
  #retake(id: string): void {
    const { redis, prefix, metrics } = this.#options
    const { token } = this.#inHand.get(id)?.job ?? {}
    if (token === undefined) return
    metrics.locksLost.inc()
    retakeLock(redis, prefix, { id, token }, LOCK_MS).then(
      () => this.#lockLost.warn(new Error('it was not renewed in time'), { facts: { jobId: id } }),
      (error: unknown) => this.#lockLost.warn(error, { facts: { jobId: id } }),
    )
  }
}

/** A script of ours moved the job: after a DelayedError, BullMQ leaves it alone. */
class MovedElsewhere extends DelayedError {}

/** The ids of a job and its request, for log lines. Its data is not trusted. */
function idsOf({ id, data }: Pick<Job<unknown>, 'id' | 'data'>) {
  return { jobId: id, requestId: isJobData(data) ? data.requestId : undefined }
}
