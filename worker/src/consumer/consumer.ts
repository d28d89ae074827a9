/** BullMQ's consumer of the queue: its settings, and how it processes jobs. */
import { QUEUE_NAME } from '@spillway/client/protocol/job'
import { openQueue } from '@spillway/client/queue/open-queue'
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { RedisWatch } from '@spillway/client/redis/watch'
import { type Job, Worker } from 'bullmq'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import { closeConsumer } from '../process/close-consumer.js'
import type { Tracing } from '../process/tracing.js'
import type { CapacityPublisher } from './capacity-publisher.js'
import type { Liveness } from './liveness.js'
import { watchForMalformedJobs } from './malformed-jobs.js'
import { watchForOrphanedJobs } from './orphaned-jobs.js'
import { ForgedJobError, type ProcessOptions, processJob } from './process-job.js'
import type { SlotShare } from './share-slots.js'
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
  /** How many jobs of this queue may be in hand. */
  share: SlotShare
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
  /** Requeues jobs that Redis gave to this consumer and that never came into its hands. After `finish()`. */
  requeueOrphaned(): Promise<void>
  /** Stops watching for malformed and orphaned jobs. */
  close(): Promise<void>
}

/** Creates a consumer that takes no job before `run()`: a worker that fails to start must not hold any. */
export function createConsumer(options: ConsumerOptions): Consumer {
  const { redis, prefix, watch, name, share, liveness, capacity, estimate, log, metrics, tracing } = options
  const inHand = new Map<string, Job>()

  async function handle(job: Job) {
    liveness.started()
    share.started()
    if (job.id !== undefined) inHand.set(job.id, job)
    try {
      const jobLog = tracing ? log.child({ traceId: tracing.traceId() }) : log
      const result = await processJob(job, { ...options, log: jobLog, taken: share.taken })
      capacity.finished(result.outcome)
      if (result.outcome === 'answered') estimate.finished(result.serviceMs)
      return result
    } finally {
      if (job.id !== undefined) inHand.delete(job.id)
      liveness.finished()
      share.finished()
    }
  }

  const worker = new Worker(QUEUE_NAME, handle, {
    connection: redis,
    prefix,
    name,
    concurrency: share.limit(),
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
  share.onChange(() => {
    const limit = share.limit()
    const isMore = limit > worker.concurrency
    worker.concurrency = limit
    if (isMore) takeMore(worker)
  })
  const queue = openQueue({ redis, prefix, watch })
  const malformed = watchForMalformedJobs({ redis, prefix, queue, log, watch, metrics })
  const isInHand = (jobId: string) => inHand.has(jobId)
  const orphaned = watchForOrphanedJobs({ redis, prefix, queue, consumerId: worker.id, isInHand, log, metrics })
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
      worker.run().catch((error: unknown) => log.error({ err: error }, 'consumer stopped reading the queue'))
    },
    isRunning: () => worker.isRunning(),
    finish: () => closeConsumer(worker, { redis, isIdle: inHand.size === 0 }),
    unfinished: () => [...inHand.values()],
    requeueOrphaned: orphaned.requeueAll,
    async close() {
      malformed.close()
      orphaned.close()
      await queue.close()
    },
  }
}

/**
 * BullMQ looks at its concurrency again when a job of its own ends. Slots that another queue's jobs left would idle until then, so it is
 * woken as its own resume() does. Where it names that queue otherwise, they do idle.
 */
function takeMore(worker: Worker): void {
  const ended: unknown = Reflect.get(worker, 'mainLoopQueue')
  if (ended instanceof Object && 'add' in ended && typeof ended.add === 'function') ended.add(Promise.resolve())
}
