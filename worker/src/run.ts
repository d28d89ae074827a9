/** The worker: BullMQ's consumer wired to hashing, replies, capacity and probes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, Worker } from 'bullmq'
import { publishCapacity } from './capacity-publisher.js'
import { createRedisClock } from './clock.js'
import type { WorkerConfig } from './config.js'
import { createHasher, type Hasher } from './hashing/index.js'
import { createLiveness } from './liveness.js'
import type { Logger } from './log.js'
import { createWorkerMetrics } from './metrics.js'
import { startOps } from './ops.js'
import { ForgedJobError, processJob } from './process.js'
import { QUEUE_NAME } from './protocol/job.js'
import { encodeReply, replyChannel, verdictKey } from './protocol/reply.js'
import { parseKeyring } from './protocol/seal.js'
import { connectRedis } from './redis.js'

/**
 * A killed worker's jobs run elsewhere within LOCK + STALLED_CHECK: the lock must run out, and the next check must come by.
 * Both can be this short because the event loop never hashes, so the lock is renewed on time.
 */
const LOCK_MS = 1_500
const STALLED_CHECK_MS = 1_000
/** Any number of kills is survivable: jobs are pure, and a deadline ends what goes round for ever. */
const STALLS_ALLOWED = 1_000
/** Finished jobs kept for operators to look at; about 2 kB each. */
const KEEP_FINISHED = { age: 600, count: 500 }

export interface RunningWorker {
  opsUrl: string
  /** The implementation in use for each algorithm. */
  engines: Hasher['engines']
  /** Stops taking jobs, finishes those in hand, hands back what cannot be finished in time. */
  close(): Promise<void>
}

export async function startWorker(config: WorkerConfig, concurrency: number, log: Logger): Promise<RunningWorker> {
  const prefix = config.QUEUE_PREFIX
  const keyring = parseKeyring(config.SPILLWAY_SEAL_KEYS)
  const policy = {
    memoryKib: config.ARGON2_MEMORY_KIB,
    time: config.ARGON2_TIME,
    parallelism: config.ARGON2_PARALLELISM,
  }
  const hasher = await createHasher(policy, { testHashes: config.SPILLWAY_TEST_HASHES })
  const clock = createRedisClock()
  const metrics = createWorkerMetrics()
  const liveness = createLiveness(concurrency)

  const redis = connectRedis(config.REDIS_URL, 'consumer')
  redis.on('error', (error) => log.warn({ err: error }, 'redis connection failed'))
  const capacity = await publishCapacity({
    redis,
    prefix,
    clock,
    log,
    slots: concurrency,
    serviceMs: await measureServiceMs(hasher),
  })

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
          log,
          metrics,
          async reply({ id, deadline, replyTo }, sealed) {
            // One write; the gateway's channel is told in the same breath. Kept until the ticket could no longer be redeemed.
            await redis
              .pipeline()
              .set(verdictKey(prefix, id), sealed, 'PX', Math.max(1, deadline - clock.now()))
              .publish(replyChannel(prefix, replyTo), encodeReply(id, sealed))
              .exec()
          },
        })
        if (result.outcome === 'answered') capacity.observe(result.serviceMs)
        return result
      } finally {
        if (job.id !== undefined) inHand.delete(job.id)
        liveness.finished()
      }
    },
    {
      connection: redis,
      prefix,
      concurrency,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: STALLS_ALLOWED,
      removeOnComplete: KEEP_FINISHED,
      removeOnFail: KEEP_FINISHED,
    },
  )
  worker.on('error', (error) => log.warn({ err: error }, 'queue error'))
  worker.on('failed', (job, error) => {
    const forged = error instanceof ForgedJobError
    log.error({ jobId: job?.id, code: forged ? error.code : 'failed', reason: error.message }, 'job failed')
  })
  worker.on('stalled', (jobId) => log.warn({ jobId }, 'job taken over from a worker that stopped answering'))
  await worker.waitUntilReady()

  const ops = await startOps({
    host: config.OPS_HOST,
    port: config.OPS_PORT,
    registry: metrics.registry,
    isAlive: () => liveness.isAlive(capacity.seen().waiting),
    isReady: () => worker.isRunning() && redis.status === 'ready',
  })

  return {
    opsUrl: ops.url,
    engines: hasher.engines,
    async close() {
      await capacity.close()
      const grace = new AbortController()
      await Promise.race([
        worker.close().finally(() => grace.abort()),
        sleep(config.SHUTDOWN_GRACE_MS, undefined, { signal: grace.signal }).catch(() => undefined),
      ])
      for (const [jobId, job] of inHand) {
        await job.moveToWait(job.token)
        log.warn({ jobId }, 'job handed back unfinished')
      }
      await ops.close()
      redis.disconnect()
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
