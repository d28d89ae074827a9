/** Runs a worker as a process: takes jobs from the queue and hashes them, with probes and metrics. */
import { hostname } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { createLogger, type Logger } from '@spillway/common/log'
import { RotatedSecret, rereadOnHangup } from '@spillway/common/secrets'
import { closeOnSignal, Shutdown } from '@spillway/common/shutdown'
import type { Tracing } from '@spillway/common/tracing'
import { RedisClock } from '@spillway/queue/redis/clock'
import { askOnNewConnection, connectRedis, type RedisConnection } from '@spillway/queue/redis/connect'
import { EvictionWatch } from '@spillway/queue/redis/eviction'
import { redisAddress, sameServerAs } from '@spillway/queue/redis/url'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { readWorkerConfig, type WorkerConfig } from './config.js'
import { CapacityPublisher } from './consumer/capacity-publisher.js'
import { Consumer, JobsInHand } from './consumer/consumer.js'
import { Liveness } from './consumer/liveness.js'
import { measureCapacity } from './hashing/capacity-estimate.js'
import { firebaseProject, keyedOwners, peppersOf } from './hashing/formats/settings.js'
import { Hasher } from './hashing/index.js'
import { NATIVE_NAME } from './hashing/native.js'
import { policyOf } from './hashing/policy.js'
import { hashingMemory, policyKib } from './hashing/threads.js'
import { WorkerMetrics } from './ops/metrics.js'
import { OpsServer } from './ops/server.js'

/** The time limit of a shutdown step that needs Redis. */
const STEP_TIMEOUT_MS = 1_000
/** A little more than the limit of tracing itself. */
const FLUSH_TRACES_TIMEOUT_MS = 2_500

/**
 * Ends the process with 1 if the worker cannot start.
 *
 * @param loadHasher tests inject another
 */
export async function start(
  env: NodeJS.ProcessEnv,
  concurrency: number,
  loadHasher?: typeof Hasher.load,
): Promise<void> {
  try {
    const config = readWorkerConfig(env)
    const log = createLogger({ service: 'worker', level: config.logLevel })
    let worker: RunningWorker | undefined
    // Installed before the start, so that a worker that still waits for Redis can be stopped.
    closeOnSignal('worker', log, async () => worker?.close())
    worker = await RunningWorker.start(config, concurrency, log, env, loadHasher)
    log.info({ engines: worker.engines }, worker.hashing)
    log.info({ opsUrl: worker.opsUrl, concurrency: worker.slots, engines: worker.engines }, 'worker ready')
    log.flush()
    growNewSpace()
  } catch (error) {
    process.stderr.write(`The worker cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}

/**
 * In V8's initial megabyte, collecting new objects takes a quarter of a busy event loop; in four, half
 * as much. V8 enlarges the space when more objects survive than fit into it: here once, not twice.
 */
function growNewSpace(): void {
  setFlagsFromString('--semi-space-growth-factor=4')
  Array.from({ length: 80_000 }, (_, n) => ({ n }))
  setFlagsFromString('--semi-space-growth-factor=1')
}

export class RunningWorker {
  readonly opsUrl: string
  /** Hashing threads: as many as there are processors, or as there is memory for. */
  readonly slots: number
  /** The implementation in use for each algorithm. */
  readonly engines: Hasher['engines']
  /** For operators: the engine in use, why not the native one, how to select the other. */
  readonly hashing: string
  readonly #parts: WorkerParts

  private constructor(parts: WorkerParts, slots: number, hasher: Hasher) {
    this.#parts = parts
    this.opsUrl = parts.ops.url
    this.slots = slots
    this.engines = hasher.engines
    this.hashing = hasher.description + otherEngine(parts.config.hashEngine === 'native', hasher)
  }

  /**
   * Resolves when the worker takes jobs. If it rejects, its process exits, which closes all.
   *
   * @param env names the files from which secrets are read again [none]
   * @param loadHasher tests inject another
   */
  static async start(
    config: WorkerConfig,
    processors: number,
    log: Logger,
    env: NodeJS.ProcessEnv = {},
    loadHasher: typeof Hasher.load = Hasher.load,
  ): Promise<RunningWorker> {
    const policy = policyOf(config)
    const { slots, slotKib, mostKib } = hashingMemory({
      slots: processors,
      policyKib: policyKib(policy.hashes),
      isShared: false,
    })
    if (slots < processors)
      log.warn({ slots, processors }, 'there is memory for fewer hashing threads than there are processors')
    const hasher = await loadHasher(policy, {
      native: config.hashEngine === 'native',
      firebase: firebaseProject(config),
      peppers: peppersOf(config.passwordPeppers),
      keyedFor: keyedOwners(config.keyedHashesFor),
      longPasswords: config.bcryptLongPasswords,
      ...{ slots, slotKib, mostKib },
    })
    const metrics = new WorkerMetrics()
    const { otelExporterOtlpEndpoint: collector } = config
    const { Tracing } = collector === '' ? {} : await import('@spillway/common/tracing')
    const tracing = Tracing && new Tracing({ service: 'spillway-worker', collector, log })
    const estimate = await measureCapacity(hasher, slots)
    const batchMs = () => estimate.lastServiceMs() * hasher.batchWidth()
    const jobsInHand = new JobsInHand({ slots, batchWidth: () => hasher.batchWidth(), batchMs })
    const keyring = parseKeyring(config.spillwaySealKeys)
    metrics.exposeKeys([keyring])
    rereadOnHangup(env, [keyring], log)
    const { redisUrl: url, queuePrefix: prefix } = config
    const currentUrl = new RotatedSecret({ env, name: 'REDIS_URL', value: url, check: sameServerAs(url), log }).current
    const redis = connectRedis(url, 'consumer', currentUrl)
    const watch = new RedisWatch(log)
    watch.watch(redis, 'queue')
    const isConnected = () => redis.status === 'ready'
    const clock = new RedisClock()
    const liveness = new Liveness({
      limit: () => jobsInHand.limit(),
      stuckAfterMs: config.stuckAfterMs,
      isConnected,
      // A key of the queue: in a Cluster, another node than the queue's could answer a PING.
      redisAnswersNewConnection: async () =>
        (await askOnNewConnection(currentUrl(), (asked) => asked.exists(capacityKey(prefix)))) !== undefined,
    })
    // Jobs are spread over the slots before two share one.
    const busySlots = () => Math.min(slots, liveness.active())
    const name = `${hostname()}:${process.pid}`
    const capacity = new CapacityPublisher({
      redis,
      prefix,
      keyring,
      clock,
      log,
      name,
      slots,
      busySlots,
      estimate,
      published({ waiting, active, keysFit }) {
        consumer.queueRead(waiting, active)
        consumer.keysFit(keysFit)
        liveness.redisAnswered(keysFit ? waiting : 0)
      },
    })
    const consumer = new Consumer({
      redis,
      prefix,
      keyring,
      clock,
      watch,
      log,
      metrics,
      tracing,
      hasher,
      estimate,
      name,
      jobsInHand,
      liveness,
      capacity,
    })
    const takesWrites = () => isConnected() && capacity.isAccepted()
    const stuckMs = () => liveness.stuckMs()
    const eviction = new EvictionWatch(redis, redisAddress(url), log).state
    metrics.exposeState({ slots, policy, engines: hasher.engines, busySlots, stuckMs, takesWrites, eviction })
    const ops = await OpsServer.start({
      host: config.opsHost,
      port: config.opsPort,
      registry: metrics.registry,
      isAlive: () => liveness.isAlive(),
      isReady: () => consumer.takesJobs() && takesWrites(),
    })
    // The first publication synchronizes the clock by which jobs expire. While Redis cannot be
    // reached or refuses writes, or gateways have other keys, the worker waits: alive, but not ready.
    await capacity.firstPublished
    await consumer.run()
    const parts = { config, log, redis, liveness, capacity, consumer, ops, tracing }
    return new RunningWorker(parts, slots, hasher)
  }

  /** Finishes the jobs in hand, or requeues them after the grace period. Never rejects. */
  async close(): Promise<void> {
    const { config, log, redis, liveness, capacity, consumer, ops, tracing } = this.#parts
    const shutdown = new Shutdown('worker', log)
    liveness.close()
    await shutdown.step('withdraw capacity', STEP_TIMEOUT_MS, () => capacity.close())
    await shutdown.step('finish jobs', config.shutdownGraceMs, () => consumer.finish())
    await shutdown.step('requeue unfinished jobs', STEP_TIMEOUT_MS, () => consumer.requeue())
    await shutdown.step('close the consumer', STEP_TIMEOUT_MS, () => consumer.close())
    await shutdown.step('close the ops port', STEP_TIMEOUT_MS, () => ops.close())
    await shutdown.step('disconnect from Redis', STEP_TIMEOUT_MS, () => redis.disconnect())
    await shutdown.step('flush traces', FLUSH_TRACES_TIMEOUT_MS, () => tracing?.close())
  }
}

interface WorkerParts {
  config: WorkerConfig
  log: Logger
  redis: RedisConnection
  liveness: Liveness
  capacity: CapacityPublisher
  consumer: Consumer
  ops: OpsServer
  tracing: Tracing | undefined
}

/** How to select the other engine, if there is one. */
function otherEngine(wanted: boolean, { native }: Hasher): string {
  if (!wanted) return `; HASH_ENGINE=native turns ${NATIVE_NAME} on`
  return native === undefined ? '' : `; HASH_ENGINE=packages turns ${NATIVE_NAME} off`
}
