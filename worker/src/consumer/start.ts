/** A worker: one set of slots for the queues of all Redis servers, with probes and metrics. */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from '@spillway/common/log'
import { RotatedSecret, rereadOnHangup } from '@spillway/common/secrets'
import { listenAddress, tracesUrl } from '@spillway/common/settings'
import { Shutdown } from '@spillway/common/shutdown'
import type { Tracing } from '@spillway/common/tracing'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { parseKeyring } from '@spillway/queue/wire/seal'
import type { WorkerConfig } from '../config.js'
import { measureCapacity } from '../hashing/capacity-estimate.js'
import { firebaseProject, keyedOwners, peppersOf } from '../hashing/formats/settings.js'
import { Hasher } from '../hashing/index.js'
import { NATIVE_NAME } from '../hashing/native.js'
import { policyOf } from '../hashing/policy.js'
import { hashingMemory, policyKib } from '../hashing/threads.js'
import { WorkerMetrics } from '../ops/metrics.js'
import { OpsServer } from '../ops/server.js'
import { OldSystem, type OldSystemOptions } from './old-system.js'
import { JobsInHand, SlotShare } from './slots.js'
import { WorkerQueue } from './worker-queue.js'

/** Of a shutdown step that needs Redis. */
const STEP_TIMEOUT_MS = 1_000
/** A little more than tracing's own limit. */
const FLUSH_TRACES_TIMEOUT_MS = 2_500

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
    this.hashing = hasher.description + otherEngine(parts.config.HASH_ENGINE === 'native', hasher)
  }

  /**
   * Resolves when the worker takes jobs. If it rejects, its process exits, which closes all.
   *
   * @param env names the files from which secrets are read again [none]
   */
  static async start(
    config: WorkerConfig,
    processors: number,
    log: Logger,
    env: NodeJS.ProcessEnv = {},
  ): Promise<RunningWorker> {
    const policy = policyOf(config)
    const { slots, slotKib } = hashingMemory({
      slots: processors,
      policyKib: policyKib(policy.hashes),
      isShared: config.SPILLWAY_FALLBACK,
    })
    if (slots < processors)
      log.warn({ slots, processors }, 'there is memory for fewer hashing threads than there are processors')
    const hasher = await Hasher.load(policy, {
      testHashes: config.SPILLWAY_TEST_HASHES,
      native: config.HASH_ENGINE === 'native',
      firebase: firebaseProject(config),
      peppers: peppersOf(config.PASSWORD_PEPPERS),
      keyedFor: keyedOwners(config.KEYED_HASHES_FOR),
      longPasswords: config.BCRYPT_LONG_PASSWORDS,
      ...{ slotKib, slots },
    })
    const metrics = new WorkerMetrics()
    const url = tracesUrl(config)
    const { Tracing } = url === undefined ? {} : await import('@spillway/common/tracing')
    const tracing = Tracing && url ? new Tracing({ service: 'spillway-worker', url, log }) : undefined
    const estimate = await measureCapacity(hasher, slots)
    const batchMs = () => estimate.lastServiceMs() * hasher.batchWidth()
    const jobsInHand = new JobsInHand({ slots, batchWidth: () => hasher.batchWidth(), batchMs })
    const queues: WorkerQueue[] = []
    const inHand = () => queues.reduce((sum, { liveness }) => sum + liveness.active(), 0)
    // Jobs are spread over the slots before two share one.
    const busySlots = () => Math.min(slots, inHand())
    const stuckMs = () => Math.max(0, ...queues.map(({ liveness }) => liveness.stuckMs()))
    metrics.exposeState({ slots, policy, engines: hasher.engines, busySlots, stuckMs, queues })
    const keyring = parseKeyring(config.SPILLWAY_SEAL_KEYS)
    metrics.exposeKeys([keyring])
    rereadOnHangup(env, [keyring], log)
    const shared = {
      oldSystem: oldSystemOf(config, (answer) => metrics.oldSystem.inc({ answer })),
      ...{ prefix: config.QUEUE_PREFIX, keyring },
      ...{ hasher, metrics, tracing, slots, inHand, busySlots, estimate },
      ...{ name: `${hostname()}:${process.pid}`, workerId: randomUUID() },
      fallback: config.SPILLWAY_FALLBACK,
      stuckAfterMs: config.STUCK_AFTER_MS,
    }
    const check = (urls: string) => parseRedisServers(urls)
    const redisUrl = new RotatedSecret({ env, name: 'REDIS_URL', value: config.REDIS_URL, check, log })
    const servers = parseRedisServers(config.REDIS_URL, redisUrl.current)
    for (const [n, share] of SlotShare.among(servers.length, jobsInHand).entries()) {
      const server = servers[n]
      if (server === undefined) continue
      const ownLog = servers.length === 1 ? log : log.child({ redis: server.address })
      queues.push(new WorkerQueue(server, share, { ...shared, log: ownLog }))
    }
    const ops = await OpsServer.start({
      host: listenAddress(config.OPS_HOST),
      port: config.OPS_PORT,
      registry: metrics.registry,
      isAlive: () => queues.every(({ liveness }) => liveness.isAlive()),
      isReady: () => queues.some((queue) => queue.consumer.isRunning() && queue.takesWrites()),
    })
    await startTaking(queues, log)
    return new RunningWorker({ config, log, queues, ops, tracing }, slots, hasher)
  }

  /** Finishes the jobs in hand, or requeues them after the grace period. Never rejects. */
  async close(): Promise<void> {
    const { config, log, queues, ops, tracing } = this.#parts
    const shutdown = new Shutdown('worker', log)
    const ofAll = (closeOne: (queue: WorkerQueue) => Promise<unknown>) => Promise.all(queues.map(closeOne))
    for (const { liveness } of queues) liveness.close()
    await shutdown.step('withdraw capacity', STEP_TIMEOUT_MS, () => ofAll(({ capacity }) => capacity.close()))
    await shutdown.step('finish jobs', config.SHUTDOWN_GRACE_MS, () =>
      ofAll(({ consumer, delivery }) => consumer.finish().finally(() => delivery.settled())),
    )
    await shutdown.step('requeue unfinished jobs', STEP_TIMEOUT_MS, () => ofAll(({ consumer }) => consumer.requeue()))
    await shutdown.step('close the consumer', STEP_TIMEOUT_MS, () => ofAll(({ consumer }) => consumer.close()))
    await shutdown.step('close the ops port', STEP_TIMEOUT_MS, () => ops.close())
    await shutdown.step('disconnect from Redis', STEP_TIMEOUT_MS, () => {
      for (const { redis } of queues) redis.disconnect()
    })
    await shutdown.step('flush traces', FLUSH_TRACES_TIMEOUT_MS, () => tracing?.close())
  }
}

interface WorkerParts {
  config: WorkerConfig
  log: Logger
  queues: readonly WorkerQueue[]
  ops: OpsServer
  tracing: Tracing | undefined
}

/** How to select the other engine, where there is another. */
function otherEngine(wanted: boolean, { native }: Hasher): string {
  if (!wanted) return `; HASH_ENGINE=native turns ${NATIVE_NAME} on`
  return native === undefined ? '' : `; HASH_ENGINE=packages turns ${NATIVE_NAME} off`
}

/**
 * Takes jobs from each Redis server once the capacity is published to it, which synchronizes the
 * clock by which jobs expire. Resolves with the first server. While a server is unreachable or
 * refuses writes, the worker waits for it: alive, but not ready without another.
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
