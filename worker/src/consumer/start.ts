/** Starts a worker: connects the queue's consumer to hashing, verdict delivery, capacity, probes and metrics. */
import { hostname } from 'node:os'
import { capacityKey } from '@spillway/client/protocol/capacity'
import { parseKeyring } from '@spillway/client/protocol/seal'
import { createRedisClock } from '@spillway/client/redis/clock'
import { connectRedis } from '@spillway/client/redis/connect'
import { redisAnswersNewConnection } from '@spillway/client/redis/new-connection'
import { watchRedis } from '@spillway/client/redis/watch'
import type { WorkerConfig } from '../config.js'
import { measureCapacity } from '../hashing/capacity-estimate.js'
import { firebaseProject } from '../hashing/formats/firebase-project.js'
import { createHasher, type Hasher } from '../hashing/index.js'
import { memoryLimitKib } from '../hashing/memory-limit.js'
import { policyOf } from '../hashing/policy.js'
import { exposeWorkerState } from '../ops/gauges.js'
import { createWorkerMetrics } from '../ops/metrics.js'
import { startOps } from '../ops/server.js'
import type { Logger } from '../process/log.js'
import { beginShutdown } from '../process/shutdown.js'
import { startTracing } from '../process/tracing.js'
import { publishCapacity } from './capacity-publisher.js'
import { createConsumer } from './consumer.js'
import { createDelivery } from './deliver.js'
import { createJobsInHand } from './jobs-in-hand.js'
import { createLiveness } from './liveness.js'
import { requeueUnfinished } from './requeue.js'
import { startSweep } from './sweep.js'

/** The time limit of a shutdown step that needs Redis. */
const STEP_TIMEOUT_MS = 1_000
/** A little more than tracing's own limit. */
const FLUSH_TRACES_TIMEOUT_MS = 2_500

export interface RunningWorker {
  opsUrl: string
  /** The implementation in use for each algorithm. */
  engines: Hasher['engines']
  /** One sentence for operators: the engine in use, and how to select the other. */
  hashing: string
  /** Stops taking jobs, finishes those in hand, and requeues those that are unfinished after the grace period. Never rejects. */
  close(): Promise<void>
}

/** Resolves when the worker takes jobs. Nothing needs closing if it rejects, because its process then exits. */
export async function startWorker(config: WorkerConfig, slots: number, log: Logger): Promise<RunningWorker> {
  const prefix = config.QUEUE_PREFIX
  const keyring = parseKeyring(config.SPILLWAY_SEAL_KEYS)
  const policy = policyOf(config)
  const hasher = await createHasher(policy, {
    testHashes: config.SPILLWAY_TEST_HASHES,
    native: config.HASH_ENGINE === 'native',
    firebase: firebaseProject(config),
    memoryLimitKib: memoryLimitKib({ slots, isShared: config.SPILLWAY_FALLBACK }),
    slots,
  })
  const clock = createRedisClock()
  const metrics = createWorkerMetrics()
  const tracing = await startTracing({ service: 'spillway-worker', endpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT })
  const name = `${hostname()}:${process.pid}`

  const redis = connectRedis(config.REDIS_URL, 'consumer')
  const watch = watchRedis(log)
  watch.watch(redis, 'queue')
  const isConnected = () => redis.status === 'ready'
  const jobsInHand = createJobsInHand({ slots, batchWidth: hasher.batchWidth })
  const liveness = createLiveness({
    limit: jobsInHand.limit,
    stuckAfterMs: config.STUCK_AFTER_MS,
    isConnected,
    redisAnswersNewConnection: () =>
      redisAnswersNewConnection({ redisUrl: config.REDIS_URL, key: capacityKey(prefix) }),
  })
  // Jobs are spread over the slots before two share one.
  const busySlots = () => Math.min(slots, liveness.active())
  const { stuckMs } = liveness
  exposeWorkerState(metrics.registry, { slots, policy, engines: hasher.engines, busySlots, stuckMs, isConnected })
  const estimate = await measureCapacity(hasher)
  const capacity = publishCapacity({
    ...{ redis, prefix, clock, log, name, slots, busySlots, estimate },
    fallback: config.SPILLWAY_FALLBACK,
    published(waiting) {
      liveness.redisAnswered(waiting)
      jobsInHand.queueRead(waiting)
    },
  })
  const sweep = startSweep({ redis, prefix, log, watch })
  const delivery = createDelivery({ redis, prefix, clock, log })
  const consumer = createConsumer({
    ...{ redis, prefix, clock, log, watch, metrics, tracing, name },
    ...{ keyring, hasher, delivery, liveness, capacity, estimate, jobsInHand },
  })
  const ops = await startOps({
    host: config.OPS_HOST,
    port: config.OPS_PORT,
    registry: metrics.registry,
    isAlive: liveness.isAlive,
    isReady: () => consumer.isRunning() && isConnected(),
  })
  // While Redis is unreachable or refuses writes, the worker waits: alive, not ready. It must not take jobs earlier, because the
  // first publication synchronizes the clock by which jobs expire.
  await capacity.firstPublished
  await consumer.run()

  async function close(): Promise<void> {
    const { step } = beginShutdown('worker', log)
    liveness.close()
    await Promise.all([
      step('withdraw capacity', STEP_TIMEOUT_MS, capacity.close),
      step('stop the sweep', STEP_TIMEOUT_MS, sweep.close),
    ])
    await step('finish jobs', config.SHUTDOWN_GRACE_MS, () => consumer.finish().finally(delivery.settled))
    await step('requeue unfinished jobs', STEP_TIMEOUT_MS, () =>
      requeueUnfinished(consumer.unfinished(), { log, metrics }),
    )
    await step('close the consumer', STEP_TIMEOUT_MS, consumer.close)
    await step('close the ops port', STEP_TIMEOUT_MS, ops.close)
    await step('disconnect from Redis', STEP_TIMEOUT_MS, () => redis.disconnect())
    await step('flush traces', FLUSH_TRACES_TIMEOUT_MS, () => tracing?.close())
  }

  return { opsUrl: ops.url, engines: hasher.engines, hashing: hasher.description, close }
}
