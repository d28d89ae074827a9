/** Starts a worker: one set of slots for the queues of all Redis, with probes and metrics. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from '@spillway/common/log'
import { beginShutdown } from '@spillway/common/shutdown'
import { startTracing } from '@spillway/common/tracing'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { parseKeyring } from '@spillway/queue/wire/seal'
import type { Job } from 'bullmq'
import type { WorkerConfig } from '../config.js'
import { measureCapacity } from '../hashing/capacity-estimate.js'
import { firebaseProject, keyedOwners, peppersOf } from '../hashing/formats/settings.js'
import { Hasher } from '../hashing/index.js'
import { hashingMemory, policyKib } from '../hashing/memory-limit.js'
import { NATIVE_NAME } from '../hashing/native.js'
import { policyOf } from '../hashing/policy.js'
import { exposeWorkerState } from '../ops/gauges.js'
import { createWorkerMetrics, type WorkerMetrics } from '../ops/metrics.js'
import { startOps } from '../ops/server.js'
import { OldSystem, type OldSystemOptions } from './old-system.js'
import { JobsInHand, SlotShare } from './slots.js'
import { openWorkerQueue, type WorkerQueue } from './worker-queue.js'

/** The time limit of a shutdown step that needs Redis. */
const STEP_TIMEOUT_MS = 1_000
/** A little more than tracing's own limit. */
const FLUSH_TRACES_TIMEOUT_MS = 2_500

export interface RunningWorker {
  opsUrl: string
  /** Hashing threads: as many as there are processors, or as there is memory for. */
  slots: number
  /** The implementation in use for each algorithm. */
  engines: Hasher['engines']
  /** One sentence for operators: the engine in use, why not the native one, and how to select the other. */
  hashing: string
  /** Stops taking jobs, finishes the jobs in hand, and requeues jobs that are unfinished after the grace period. Never rejects. */
  close(): Promise<void>
}

/** Resolves when the worker takes jobs. Nothing needs closing if it rejects, because its process then exits. */
export async function startWorker(config: WorkerConfig, processors: number, log: Logger): Promise<RunningWorker> {
  const prefix = config.QUEUE_PREFIX
  const keyring = parseKeyring(config.SPILLWAY_SEAL_KEYS)
  const policy = policyOf(config)
  const { slots, slotKib } = hashingMemory({
    slots: processors,
    policyKib: policyKib(policy.hashes),
    isShared: config.SPILLWAY_FALLBACK,
  })
  if (slots < processors)
    log.warn({ slots, processors }, 'there is memory for fewer hashing threads than there are processors')
  const native = config.HASH_ENGINE === 'native'
  const hasher = await Hasher.load(policy, {
    testHashes: config.SPILLWAY_TEST_HASHES,
    native,
    firebase: firebaseProject(config),
    peppers: peppersOf(config.PASSWORD_PEPPERS),
    keyedFor: keyedOwners(config.KEYED_HASHES_FOR),
    longPasswords: config.BCRYPT_LONG_PASSWORDS,
    slotKib,
    slots,
  })
  const metrics = createWorkerMetrics()
  const tracing = await startTracing({ service: 'spillway-worker', endpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT })
  const name = `${hostname()}:${process.pid}`

  const estimate = await measureCapacity(hasher, slots)
  const batchMs = () => estimate.lastServiceMs() * hasher.batchWidth()
  const jobsInHand = new JobsInHand({ slots, batchWidth: () => hasher.batchWidth(), batchMs })
  const urls = parseRedisServers(config.REDIS_URL)
  const queues: WorkerQueue[] = []
  const inHand = () => queues.reduce((sum, { liveness }) => sum + liveness.active(), 0)
  // Jobs are spread over the slots before two share one.
  const busySlots = () => Math.min(slots, inHand())
  const stuckMs = () => Math.max(0, ...queues.map(({ liveness }) => liveness.stuckMs()))
  exposeWorkerState(metrics.registry, { slots, policy, engines: hasher.engines, busySlots, stuckMs, queues })
  const shared = {
    oldSystem: oldSystemOf(config, (answer) => metrics.oldSystem.inc({ answer })),
    ...{ prefix, keyring, hasher, metrics, tracing, name, slots, inHand, busySlots },
    workerId: randomUUID(),
    fallback: config.SPILLWAY_FALLBACK,
    stuckAfterMs: config.STUCK_AFTER_MS,
    estimate,
  }
  const shares = SlotShare.among(urls.length, jobsInHand)
  for (const [n, share] of shares.entries()) {
    const server = urls[n]
    if (server === undefined) continue
    const ownLog = urls.length === 1 ? log : log.child({ redis: server.address })
    queues.push(openWorkerQueue(server, share, { ...shared, log: ownLog }))
  }
  const ops = await startOps({
    host: config.OPS_HOST,
    port: config.OPS_PORT,
    registry: metrics.registry,
    isAlive: () => queues.every(({ liveness }) => liveness.isAlive()),
    isReady: () => queues.some(({ consumer, isConnected }) => consumer.isRunning() && isConnected()),
  })
  await startTaking(queues, log)

  async function close(): Promise<void> {
    const { step } = beginShutdown('worker', log)
    const ofAll = (closeOne: (queue: WorkerQueue) => Promise<unknown>) => Promise.all(queues.map(closeOne))
    for (const { liveness } of queues) liveness.close()
    await step('withdraw capacity', STEP_TIMEOUT_MS, () => ofAll(({ capacity }) => capacity.close()))
    await step('finish jobs', config.SHUTDOWN_GRACE_MS, () =>
      ofAll(({ consumer, delivery }) => consumer.finish().finally(() => delivery.settled())),
    )
    await step('requeue unfinished jobs', STEP_TIMEOUT_MS, () =>
      ofAll(async ({ consumer }) => {
        await requeueUnfinished(consumer.unfinished(), { log, metrics })
        await consumer.requeueOrphaned()
      }),
    )
    await step('close the consumer', STEP_TIMEOUT_MS, () => ofAll(({ consumer }) => consumer.close()))
    await step('close the ops port', STEP_TIMEOUT_MS, ops.close)
    await step('disconnect from Redis', STEP_TIMEOUT_MS, () => {
      for (const { redis } of queues) redis.disconnect()
    })
    await step('flush traces', FLUSH_TRACES_TIMEOUT_MS, () => tracing?.close())
  }

  const hashing = hasher.description + otherEngine(native, hasher)
  return { opsUrl: ops.url, slots, engines: hasher.engines, hashing, close }
}

/** How to select the other engine, where there is another. */
function otherEngine(wanted: boolean, { native }: Hasher): string {
  if (!wanted) return `; HASH_ENGINE=native turns ${NATIVE_NAME} on`
  return native === undefined ? '' : `; HASH_ENGINE=packages turns ${NATIVE_NAME} off`
}

/**
 * Starts taking jobs from each Redis server, and resolves when the first server has begun. A server begins once the capacity is published to
 * it, because that publication synchronizes the clock by which jobs expire. While a server is unreachable or refuses writes, the worker
 * waits for it. The worker is alive then, but not ready if it has no other server.
 */
async function startTaking(queues: readonly WorkerQueue[], log: Logger): Promise<void> {
  let hasBegun = false
  const taking = queues.map(async ({ address, capacity, consumer }) => {
    await capacity.firstPublished
    await consumer.run().catch((error: unknown) => {
      if (!hasBegun) throw error
      log.error({ err: error, redis: address }, 'no jobs are taken from one Redis server')
    })
  })
  await Promise.race(taking)
  hasBegun = true
}

/** Undefined where no old system is to be asked. */
function oldSystemOf(config: WorkerConfig, answered: NonNullable<OldSystemOptions['answered']>): OldSystem | undefined {
  const { LEGACY_VERIFY_URL: url, LEGACY_VERIFY_KEY, LEGACY_VERIFY_TIMEOUT_MS, LEGACY_VERIFY_CONCURRENCY } = config
  if (url === '') return undefined
  return new OldSystem({
    ...{ url, key: Buffer.from(LEGACY_VERIFY_KEY, 'base64'), answered },
    ...{ timeoutMs: LEGACY_VERIFY_TIMEOUT_MS, concurrency: LEGACY_VERIFY_CONCURRENCY },
  })
}

/**
 * Moves jobs back to the front of the queue, in their order. A job that cannot be moved is left to stall recovery: another worker
 * may have taken it already.
 */
async function requeueUnfinished(
  jobs: Job[],
  { log, metrics }: { log: Logger; metrics: WorkerMetrics },
): Promise<void> {
  const requeuing = jobs.toReversed().map(async (job) => {
    try {
      await job.moveToWait(job.token)
      metrics.requeued.inc()
      log.warn({ jobId: job.id }, 'job requeued unfinished')
    } catch (error) {
      log.warn({ jobId: job.id, err: error }, 'job could not be requeued')
    }
  })
  await Promise.all(requeuing)
}
