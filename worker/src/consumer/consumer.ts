/** BullMQ's consumer of the queue: its settings, and how it processes jobs. */

import { throttledWarning } from '@spillway/common/throttled-warning'
import type { Tracing } from '@spillway/common/tracing-sdk'
import { renewLocksOfJobsAlone, takeMoreJobs } from '@spillway/queue/inside/bullmq'
import { countOtherWorkers } from '@spillway/queue/jobs/capacity'
import { retakeLock } from '@spillway/queue/jobs/jobs'
import { closeConsumer } from '@spillway/queue/jobs/open-queue'
import { passOver } from '@spillway/queue/jobs/ticket'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { BEHIND_PRIORITY, DEFERRED_PRIORITY, type JobData, type JobResult, QUEUE_NAME } from '@spillway/queue/wire/job'
import { SEAL_KEYS } from '@spillway/queue/wire/seal'
import { DelayedError, ErrorCode, type Job, Worker } from 'bullmq'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { CapacityPublisher } from './capacity-publisher.js'
import { JobWatch, KEEP_FINISHED } from './job-watch.js'
import type { Liveness } from './liveness.js'
import { ForgedJobError, type ProcessOptions, processJob } from './process-job.js'
import type { SlotShare } from './slots.js'

/**
 * A killed worker's jobs run elsewhere within LOCK + 3 × STALLED_CHECK, less than three seconds. The lock must expire, two checks must
 * pass, and the first check is late when it was the dead worker's turn. A worker that got no core for LOCK − RENEWAL keeps its jobs: of
 * those three seconds the lock has as much as it can.
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
/** Time that a job which does not open is left to other workers, and how often it may come back. */
const LEFT_FOR_MS = 500
const MOST_TRIES = 10
/** BullMQ's codes of a job that another worker has, or has ended. */
const LOCK_CODES: ReadonlySet<unknown> = new Set([
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
])
/** Completed jobs kept for operators, a second: a flood leaves a sample. */
const KEPT_A_SECOND = 50
/** Practically unlimited: jobs are pure functions, and their deadlines end endless retries. */
const STALLS_ALLOWED = 1_000

export interface ConsumerOptions
  extends Omit<ProcessOptions, 'taken' | 'isTooLate' | 'hashed' | 'handBack' | 'beside'> {
  redis: RedisConnection
  prefix: string
  watch: RedisWatch
  workerId: string
  name: string
  /** How many jobs of this queue may be in hand. */
  share: SlotShare
  liveness: Pick<Liveness, 'started' | 'finished'>
  capacity: Pick<CapacityPublisher, 'finished'>
  estimate: Pick<CapacityEstimate, 'finished' | 'answerMs'>
  /** Jobs in hand, of all queues. */
  inHand(): number
  tracing: Tracing | undefined
}

export interface Consumer {
  /** Starts to take jobs. */
  run(): Promise<void>
  isRunning(): boolean
  /** Jobs in hand that wait for another system's answer, and take no slot. */
  asking(): number
  /** So many jobs of the queue are in hand, of all workers. */
  queueRead(active: number): void
  /** Stops taking jobs, and resolves when those in hand are finished. */
  finish(): Promise<void>
  /** The jobs in hand. */
  unfinished(): Job[]
  /** Requeues orphaned jobs of this consumer. After `finish()`. */
  requeueOrphaned(): Promise<void>
  /** Stops watching for malformed and orphaned jobs. */
  close(): Promise<void>
}

/** Takes no job before `run()`: a worker that fails to start must not hold jobs. */
export function createConsumer(options: ConsumerOptions): Consumer {
  const { redis, prefix, watch, name, share, liveness, capacity, estimate, log, metrics, tracing } = options
  const inHand = new Map<string, { job: Job; done: Promise<JobResult> }>()
  let kept = { second: 0, jobs: 0 }
  /** Jobs in hand that wait for another system's answer, and take no slot. */
  let asking = 0

  /** Has a job deleted when it is completed, unless it is one of the sample that is kept. */
  function keepSample(job: Job): void {
    const second = Math.floor(performance.now() / 1_000)
    if (kept.second !== second) kept = { second, jobs: 0 }
    if (kept.jobs < KEPT_A_SECOND) kept.jobs += 1
    else job.opts.removeOnComplete = true
  }

  /** A job whose lock was lost may be taken again while it is in hand: it is hashed once. */
  function handle(job: Job): Promise<JobResult> {
    const { id = '' } = job
    const done = inHand.get(id)?.done ?? perform(job)
    inHand.set(id, { job, done })
    return done
  }

  async function perform(job: Job): Promise<JobResult> {
    liveness.started()
    share.started()
    // The trace of a job is active until the first await alone.
    const traces = tracing?.telemetry.contextManager
    const trace = traces?.active()
    try {
      if (await isPassedOver(job)) throw new MovedElsewhere()
      const begin = () => {
        const jobLog = tracing ? log.child({ traceId: tracing.traceId() }) : log
        const handBack: ProcessOptions['handBack'] = (_, data) => leaveToOthers(job, data)
        return processJob(job, {
          ...options,
          log: jobLog,
          taken: (queueWaitMs) => share.taken(queueWaitMs),
          isTooLate,
          hashed: (ms, foretoldMs) => estimate.finished(ms, foretoldMs),
          beside,
          handBack,
        })
      }
      const result = await (traces?.with(trace, begin) ?? begin())
      if (result === undefined) throw new MovedElsewhere()
      capacity.finished(result.outcome)
      keepSample(job)
      return result
    } finally {
      inHand.delete(job.id ?? '')
      liveness.finished()
      share.finished()
    }
  }

  /** Hands a job that does not open to another worker, once; false without such a worker. */
  async function leaveToOthers(job: Job, data: JobData): Promise<boolean> {
    const { workerId } = options
    const isTried = data.unopenedBy !== undefined && data.unopenedBy !== workerId
    try {
      if (isTried || job.attemptsStarted > MOST_TRIES) return false
      if ((await countOtherWorkers(redis, prefix, workerId)) === 0) return false
      await job.updateData({ ...data, unopenedBy: workerId })
      await job.moveToDelayed(Date.now() + LEFT_FOR_MS, job.token)
      leftToOthers.warn(new Error(`compare ${SEAL_KEYS} with theirs`), { facts: { jobId: job.id } })
      return true
    } catch {
      return false
    }
  }

  /** Gives the slot of a job to another one while it waits for another system's answer. */
  async function beside<T>(answer: Promise<T>): Promise<T> {
    asking += 1
    liveness.finished()
    share.finished()
    try {
      return await answer
    } finally {
      asking -= 1
      liveness.started()
      share.started()
    }
  }

  /** A job alone in hand is always begun: otherwise a wrong prediction would stay. */
  function isTooLate(leftMs: number, foretoldMs: number | undefined): boolean {
    const others = options.inHand() - 1
    return others > 0 && estimate.answerMs(others, foretoldMs) > leftMs
  }

  /**
   * Nothing is hashed for a client that is not there: of deferred jobs alone that is known. Where Redis does not say, a deferred job is
   * hashed. A job that is behind is left alone, until its lock has expired and it is taken again: guesses must not be hashed unseen.
   */
  async function isPassedOver({ id, token, opts, data }: Job): Promise<boolean> {
    const deadline: unknown = Object(data).deadline
    const isBehind = opts.priority === BEHIND_PRIORITY
    if (
      !(isBehind || opts.priority === DEFERRED_PRIORITY) ||
      id === undefined ||
      token === undefined ||
      !Number.isSafeInteger(deadline)
    )
      return false
    try {
      const passed = await passOver(redis, prefix, { id, deadline: Number(deadline) }, token, isBehind)
      if (passed) metrics.tickets.inc({ event: 'passed_over' })
      return passed
    } catch {
      return isBehind
    }
  }

  const worker = new Worker(QUEUE_NAME, handle, {
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
  renewLocksOfJobsAlone(worker)
  share.onChange(() => {
    const limit = share.limit() + asking
    const isMore = limit > worker.concurrency
    worker.concurrency = limit
    if (isMore) takeMoreJobs(worker)
  })
  const jobWatch = new JobWatch({
    ...{ redis, prefix, watch, consumerId: worker.id, log, metrics },
    isInHand: (jobId) => inHand.has(jobId),
  })
  const leftToOthers = throttledWarning(log, 'jobs do not open here: they are left to other workers')
  const lockLost = throttledWarning(log, 'lock of a job in hand lost')
  /** Takes a lost lock again, unless another worker has it: the job would be hashed twice. */
  function retake(id: string): void {
    const { token } = inHand.get(id)?.job ?? {}
    if (token === undefined) return
    metrics.locksLost.inc()
    retakeLock(redis, prefix, { id, token }, LOCK_MS).then(
      () => lockLost.warn(new Error('it was not renewed in time'), { facts: { jobId: id } }),
      (error: unknown) => lockLost.warn(error, { facts: { jobId: id } }),
    )
  }
  worker.on('lockRenewalFailed', (jobIds) => jobIds.forEach(retake))
  worker.on('error', (error) => {
    if (!watch.isLogged(error) && !isOfLock(error)) jobWatch.suspect(error)
  })
  worker.on('failed', (job, error) => {
    capacity.finished('failed')
    const forged = error instanceof ForgedJobError
    log.error({ jobId: job?.id, code: forged ? error.code : 'failed', reason: error.message }, 'job failed')
  })
  worker.on('stalled', (jobId) => {
    metrics.stalled.inc()
    log.warn({ jobId }, 'job taken over from a worker that stopped answering')
  })

  return {
    async run() {
      await worker.waitUntilReady()
      worker.run().catch((error: unknown) => log.error({ err: error }, 'consumer stopped reading the queue'))
    },
    isRunning: () => worker.isRunning(),
    asking: () => asking,
    queueRead(active) {
      worker.opts.stalledInterval = active + inHand.size > 0 ? STALLED_CHECK_MS : QUIET_STALLED_CHECK_MS
    },
    finish: () => closeConsumer(worker, { redis, isIdle: inHand.size === 0 }),
    unfinished: () => [...inHand.values()].map(({ job }) => job),
    requeueOrphaned: () => jobWatch.requeueOrphaned(),
    close: () => jobWatch.close(),
  }
}

/** A script of ours moved the job: after a DelayedError, BullMQ leaves it alone. */
class MovedElsewhere extends DelayedError {}

/** Whether BullMQ's error is about a lock: `lockRenewalFailed` has handled it. */
function isOfLock(error: Error): boolean {
  return ('code' in error && LOCK_CODES.has(error.code)) || error.message.startsWith('could not renew lock')
}
