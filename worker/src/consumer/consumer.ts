/** BullMQ's consumer of the queue: its settings, and how it processes jobs. */
import { QUEUE_NAME } from '@spillway/client/protocol/job'
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { RedisWatch } from '@spillway/client/redis/watch'
import { type Job, Worker } from 'bullmq'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { Tracing } from '../process/tracing.js'
import type { CapacityPublisher } from './capacity-publisher.js'
import type { JobsInHand } from './jobs-in-hand.js'
import type { Liveness } from './liveness.js'
import { watchForMalformedJobs } from './malformed-jobs.js'
import { ForgedJobError, type ProcessOptions, processJob } from './process-job.js'
import { KEEP_FINISHED } from './sweep.js'

/**
 * A killed worker's jobs run elsewhere within LOCK + 3 × STALLED_CHECK: the lock must expire, two checks must pass, and the first
 * check is late when it was the dead worker's turn. Both can be this short because the event loop never hashes, so locks are renewed
 * on time.
 */
const LOCK_MS = 1_500
const STALLED_CHECK_MS = 500
/** How long an idle worker's read blocks, in seconds: less than the socket timeout of its connection. */
const IDLE_READ_S = 1
/** How long after a broken connection the queue is read again. */
const READ_RETRY_MS = 250
/** Practically unlimited: jobs are pure functions, and their deadlines end endless retries. */
const STALLS_ALLOWED = 1_000

export interface ConsumerOptions extends Omit<ProcessOptions, 'taken'> {
  redis: RedisConnection
  prefix: string
  watch: RedisWatch
  name: string
  jobsInHand: JobsInHand
  liveness: Pick<Liveness, 'started' | 'finished'>
  capacity: Pick<CapacityPublisher, 'finished'>
  estimate: Pick<CapacityEstimate, 'finished'>
  tracing: Tracing | undefined
}

export interface Consumer {
  /** Starts to take jobs. */
  run(): Promise<void>
  isRunning(): boolean
  /** Stops taking jobs, and resolves when those in hand are finished. */
  finish(): Promise<void>
  /** The jobs in hand. */
  unfinished(): Job[]
  /** Stops watching for malformed jobs. */
  close(): Promise<void>
}

/** Creates a consumer that takes no job before `run()`: a worker that fails to start must not hold any. */
export function createConsumer(options: ConsumerOptions): Consumer {
  const { redis, prefix, watch, name, jobsInHand, liveness, capacity, estimate, log, metrics, tracing } = options
  const inHand = new Map<string, Job>()

  async function handle(job: Job) {
    liveness.started()
    if (job.id !== undefined) inHand.set(job.id, job)
    try {
      const jobLog = tracing ? log.child({ traceId: tracing.traceId() }) : log
      const result = await processJob(job, { ...options, log: jobLog, taken })
      capacity.finished(result.outcome)
      if (result.outcome === 'answered') estimate.finished(result.serviceMs)
      return result
    } finally {
      if (job.id !== undefined) inHand.delete(job.id)
      liveness.finished()
    }
  }

  function taken(queueWaitMs: number): void {
    jobsInHand.taken(queueWaitMs)
    worker.concurrency = jobsInHand.limit()
  }

  const worker = new Worker(QUEUE_NAME, handle, {
    connection: redis,
    prefix,
    name,
    concurrency: jobsInHand.limit(),
    autorun: false,
    lockDuration: LOCK_MS,
    stalledInterval: STALLED_CHECK_MS,
    maxStalledCount: STALLS_ALLOWED,
    drainDelay: IDLE_READ_S,
    runRetryDelay: READ_RETRY_MS,
    removeOnComplete: KEEP_FINISHED,
    removeOnFail: KEEP_FINISHED,
    ...(tracing ? { telemetry: tracing.telemetry } : {}),
  })
  const malformed = watchForMalformedJobs({ redis, prefix, log, watch, metrics })
  worker.on('error', (error) => {
    if (!watch.isLogged(error)) malformed.suspect(error)
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
      worker.run().catch((error: unknown) => log.error({ err: error }, 'the queue is not read any more'))
    },
    isRunning: () => worker.isRunning(),
    finish: () => worker.close(),
    unfinished: () => [...inHand.values()],
    close: malformed.close,
  }
}
