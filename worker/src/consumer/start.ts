/** The worker: BullMQ's consumer wired to hashing, replies, capacity and probes. */
import { hostname } from 'node:os'
import { capacityKey } from '@spillway/client/protocol/capacity'
import { QUEUE_NAME } from '@spillway/client/protocol/job'
import { parseKeyring } from '@spillway/client/protocol/seal'
import { createRedisClock } from '@spillway/client/redis/clock'
import { connectRedis } from '@spillway/client/redis/connect'
import { redisAnswersNewConnection } from '@spillway/client/redis/new-connection'
import { watchRedis } from '@spillway/client/redis/watch'
import { type Job, Worker } from 'bullmq'
import type { WorkerConfig } from '../config.js'
import { createHasher, type Hasher } from '../hashing/index.js'
import { policyOf } from '../hashing/policy.js'
import { exposeWorkerState } from '../ops/gauges.js'
import { createWorkerMetrics } from '../ops/metrics.js'
import { startOps } from '../ops/server.js'
import { beginClosing } from '../process/closing.js'
import type { Logger } from '../process/log.js'
import { startTracing } from '../process/tracing.js'
import { publishCapacity } from './capacity-publisher.js'
import { createDelivery } from './deliver.js'
import { createLiveness } from './liveness.js'
import { watchForMalformedJobs } from './malformed-jobs.js'
import { ForgedJobError, processJob } from './process-job.js'
import { requeueUnfinished } from './requeue.js'
import { KEEP_FINISHED, startSweep } from './sweep.js'

/**
 * A killed worker's jobs run elsewhere within LOCK + 3 × STALLED_CHECK: the lock must run out, two checks must come by, and
 * the first is late when it was the dead worker's turn. Both can be this short because the event loop never hashes, so the lock
 * is renewed on time.
 */
const LOCK_MS = 1_500
const STALLED_CHECK_MS = 500
/** How long an idle worker's read blocks, in seconds: less than the silence after which a connection counts as dead. */
const IDLE_READ_S = 1
/** When Redis breaks a connection off, the queue is read again after this long. */
const READ_AGAIN_MS = 250
/** Any number of kills is survivable: jobs are pure, and a deadline ends what goes round for ever. */
const STALLS_ALLOWED = 1_000

/** How long a stopping worker tries to say to Redis what it still has to say. */
const FAREWELL_MS = 1_000
/** A little more than tracing gives itself. */
const LAST_TRACES_MS = 2_500

export interface RunningWorker {
  opsUrl: string
  /** The implementation in use for each algorithm. */
  engines: Hasher['engines']
  /** Which engine that is and how to have the other, in a sentence. */
  hashing: string
  /** Stops taking jobs, finishes those in hand, hands back what cannot be finished in time. Never rejects. */
  close(): Promise<void>
}

/** Resolves when the worker takes jobs; until then nothing has to be closed but its process. */
export async function startWorker(config: WorkerConfig, concurrency: number, log: Logger): Promise<RunningWorker> {
  const prefix = config.QUEUE_PREFIX
  const keyring = parseKeyring(config.SPILLWAY_SEAL_KEYS)
  const policy = policyOf(config)
  const hasher = await createHasher(policy, {
    testHashes: config.SPILLWAY_TEST_HASHES,
    nativeThreads: config.HASH_ENGINE === 'native' ? concurrency : undefined,
  })
  const clock = createRedisClock()
  const metrics = createWorkerMetrics()
  const tracing = await startTracing({ service: 'spillway-worker', endpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT })
  const name = `${hostname()}:${process.pid}`

  const redis = connectRedis(config.REDIS_URL, 'consumer')
  const watch = watchRedis(log)
  watch.watch(redis, 'queue')
  const isConnected = () => redis.status === 'ready'
  const liveness = createLiveness({
    slots: concurrency,
    stuckAfterMs: config.STUCK_AFTER_MS,
    isConnected,
    redisAnswersNewConnection: () =>
      redisAnswersNewConnection({ redisUrl: config.REDIS_URL, key: capacityKey(prefix) }),
  })
  exposeWorkerState(metrics.registry, {
    slots: concurrency,
    policy,
    engines: hasher.engines,
    busySlots: liveness.active,
    stuckMs: liveness.stuckMs,
    isConnected,
  })
  const capacity = publishCapacity({
    redis,
    prefix,
    clock,
    log,
    name,
    slots: concurrency,
    busySlots: liveness.active,
    fallback: config.SPILLWAY_FALLBACK,
    serviceMs: await measureServiceMs(hasher),
    heard: liveness.heard,
  })
  const sweep = startSweep({ redis, prefix, log, watch })

  const delivery = createDelivery({ redis, prefix, clock, log })

  const inHand = new Map<string, Job>()
  const worker = new Worker(
    QUEUE_NAME,
    async (job: Job) => {
      liveness.started()
      if (job.id !== undefined) inHand.set(job.id, job)
      try {
        const result = await processJob(job, {
          keyring,
          hasher,
          clock,
          log: tracing ? log.child({ traceId: tracing.traceId() }) : log,
          metrics,
          tracing,
          delivery,
        })
        if (result.outcome === 'answered') capacity.finished('answered', result.serviceMs)
        else capacity.finished('expired')
        return result
      } finally {
        if (job.id !== undefined) inHand.delete(job.id)
        liveness.finished()
      }
    },
    {
      connection: redis,
      prefix,
      name,
      concurrency,
      // Not before the probes are up, and more: a worker that cannot start must not have taken jobs.
      autorun: false,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: STALLS_ALLOWED,
      drainDelay: IDLE_READ_S,
      runRetryDelay: READ_AGAIN_MS,
      removeOnComplete: KEEP_FINISHED,
      removeOnFail: KEEP_FINISHED,
      ...(tracing ? { telemetry: tracing.telemetry } : {}),
    },
  )
  const malformed = watchForMalformedJobs({ redis, prefix, log, watch, metrics })
  worker.on('error', (error) => {
    if (!watch.isTold(error)) malformed.suspect(error)
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
  const ops = await startOps({
    host: config.OPS_HOST,
    port: config.OPS_PORT,
    registry: metrics.registry,
    isAlive: liveness.isAlive,
    isReady: () => worker.isRunning() && isConnected(),
  })
  // A Redis that is away or refuses writes is waited for, alive and not ready. Only with the first publication is its time known,
  // by which jobs are late: before that none may be taken.
  await capacity.published
  await worker.waitUntilReady()
  worker.run().catch((error: unknown) => log.error({ err: error }, 'the queue is not read any more'))

  return {
    opsUrl: ops.url,
    engines: hasher.engines,
    hashing: hasher.description,
    async close() {
      const { step } = beginClosing('worker', log)
      liveness.close()
      await Promise.all([
        step('take capacity back', FAREWELL_MS, capacity.close),
        step('end the sweep', FAREWELL_MS, sweep.close),
      ])
      await step('finish jobs', config.SHUTDOWN_GRACE_MS, () => worker.close().finally(delivery.settled))
      await step('hand jobs back', FAREWELL_MS, () => requeueUnfinished([...inHand.values()], { log, metrics }))
      await step('end the watch', FAREWELL_MS, malformed.close)
      await step('close the ops port', FAREWELL_MS, ops.close)
      await step('let go of Redis', FAREWELL_MS, () => redis.disconnect())
      await step('send the last traces', LAST_TRACES_MS, () => tracing?.close())
    },
  }
}

/** What one verify takes here now, in milliseconds; the first is not counted, it pays for loading. */
async function measureServiceMs(hasher: Hasher): Promise<number> {
  await hasher.decoy('warm-up')
  const startedAt = performance.now()
  await hasher.decoy('measured')
  return performance.now() - startedAt
}
