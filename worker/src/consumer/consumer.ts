/**
 * The consumer of the queue: takes a job, opens it, hashes unless its client is away, and answers with
 * the result, sealed, stored and announced.
 */
import type { Logger } from '@spillway/common/log'
import { ThrottledWarning } from '@spillway/common/throttled-warning'
import type { Tracing } from '@spillway/common/tracing'
import { closeConsumer, retakeLock } from '@spillway/queue/bullmq'
import { isPresent } from '@spillway/queue/order'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import {
  type HashRequest,
  isHashRequest,
  isJobData,
  isJobResult,
  isVerifyRequest,
  type JobData,
  type JobName,
  type JobResult,
  jobNames,
  QUEUE_NAME,
  type Result,
  type VerifyRequest,
} from '@spillway/queue/wire/job'
import {
  encodeReply,
  type JobRef,
  presentKey,
  replyChannel,
  requestSeal,
  resultKey,
  resultSeal,
  SKIPPED,
  upgradeOf,
} from '@spillway/queue/wire/reply'
import { type Keyring, SealError } from '@spillway/queue/wire/seal'
import { ErrorCode, type Job, UnrecoverableError, Worker } from 'bullmq'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { Hasher } from '../hashing/index.js'
import { type Performed, type PerformOptions, performHash, performVerify } from '../hashing/perform.js'
import { jobsUnderLoad } from '../hashing/threads.js'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { CapacityPublisher } from './capacity-publisher.js'
import { JobWatch, KEEP_FINISHED } from './job-watch.js'
import type { Liveness } from './liveness.js'

/**
 * A killed worker's jobs run elsewhere within LOCK + 3 × STALLED_CHECK, less than three seconds:
 * the lock expires, two checks pass, and the first is late if it was the dead worker's turn. A
 * worker that gets no core for up to LOCK − RENEWAL keeps its jobs.
 */
const LOCK_MS = 2_000
const STALLED_CHECK_MS = 300
/**
 * While no worker has a job in hand. Idle workers notice a job in hand within a second. A check
 * keeps others from checking for this time. Both together are not longer than LOCK.
 */
const IDLE_CHECK_MS = 1_000
/** BullMQ checks locks every half of this time, and renews locks that are older than that. */
const RENEWAL_MS = 400
/** Blocking read of an idle worker (s), below its connection's socket timeout. */
const IDLE_READ_S = 2.5
/** How long after a broken connection the queue is read again. */
const READ_RETRY_MS = 250
/** Practically unlimited: jobs are pure functions, and their deadlines end endless retries. */
const STALLS_ALLOWED = 1_000

/** What a worker has for all jobs. */
export interface JobParts {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  hasher: Hasher
  clock: RedisClock
  log: Logger
  metrics: WorkerMetrics
  estimate: CapacityEstimate
  liveness: Liveness
  tracing?: Tracing | undefined
}

interface ConsumerOptions extends JobParts {
  watch: RedisWatch
  name: string
  jobsInHand: JobsInHand
  capacity: CapacityPublisher
}

/** Takes no job before `run()`: a worker that fails to start must not hold jobs. */
export class Consumer {
  readonly #options: ConsumerOptions
  readonly #worker: Worker
  readonly #jobWatch: JobWatch
  readonly #inHand = new Map<string, { job: Job; done: Promise<JobResult> }>()
  readonly #lockLost: ThrottledWarning
  #hasBegun = false

  constructor(options: ConsumerOptions) {
    const { redis, prefix, watch, clock, name, jobsInHand, log, metrics, tracing } = options
    this.#options = options
    this.#worker = new Worker(QUEUE_NAME, (job: Job) => this.#handle(job), {
      connection: redis,
      prefix,
      name,
      concurrency: jobsInHand.limit(),
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
    this.#jobWatch = new JobWatch({
      ...{ redis, prefix, watch, clock, consumerId: this.#worker.id, log, metrics },
      isInHand: (jobId) => this.#inHand.has(jobId),
    })
    this.#lockLost = new ThrottledWarning(log, 'lock of a job in hand lost')
    this.#listen()
  }

  async run(): Promise<void> {
    const { log } = this.#options
    await this.#worker.waitUntilReady()
    this.#hasBegun = true
    this.#worker.run().catch((error: unknown) => log.error({ err: error }, 'consumer stopped reading the queue'))
  }

  takesJobs(): boolean {
    return this.#worker.isRunning() && !this.#worker.isPaused()
  }

  /** Takes no jobs while the keys do not fit. Call it repeatedly. */
  keysFit(fit: boolean): void {
    const worker = this.#worker
    if (!this.#hasBegun || worker.isPaused() !== fit) return
    const changed = fit ? worker.resume() : worker.pause(true)
    changed.catch((error: unknown) => this.#options.log.error({ err: error }, 'consumer not paused or resumed'))
  }

  queueRead(waiting: number, active: number): void {
    this.#options.jobsInHand.queueRead(waiting)
    // BullMQ reads this option after each check.
    this.#worker.opts.stalledInterval = active === 0 ? IDLE_CHECK_MS : STALLED_CHECK_MS
    this.#limitChanged()
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
      // Otherwise, a renewal that fails because the job has moved would take its lock again.
      this.#inHand.delete(job.id ?? '')
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

  /** Stops watching for orphaned jobs. */
  close(): Promise<void> {
    return this.#jobWatch.close()
  }

  #listen(): void {
    const { watch, capacity, log, metrics } = this.#options
    this.#worker.on('lockRenewalFailed', (jobIds) => {
      for (const id of jobIds) this.#retake(id)
    })
    this.#worker.on('error', (error) => {
      if (!isOfLock(error)) watch.queueFailed(error)
    })
    this.#worker.on('completed', ({ id }, result) => {
      if (!isJobResult(result) || result.outcome !== 'skipped' || id === undefined) return
      announceSkip(id, this.#options).catch((error: unknown) =>
        log.debug({ err: error, jobId: id }, 'a skip was not announced'),
      )
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
    this.#worker.concurrency = this.#options.jobsInHand.limit()
  }

  /** A job may be taken again while it is in hand, if its lock was lost: it is hashed only once. */
  #handle(job: Job): Promise<JobResult> {
    const { id = '' } = job
    const done = this.#inHand.get(id)?.done ?? this.#perform(job)
    this.#inHand.set(id, { job, done })
    return done
  }

  async #perform(job: Job): Promise<JobResult> {
    const { jobsInHand, liveness, capacity } = this.#options
    liveness.started()
    try {
      const result = await processJob(job, this.#options, (queueWaitMs) => {
        jobsInHand.taken(queueWaitMs)
        this.#limitChanged()
      })
      capacity.finished(result.outcome)
      return result
    } finally {
      this.#inHand.delete(job.id ?? '')
      liveness.finished()
    }
  }

  /** Retakes a lost lock unless another worker has it: otherwise the job would be hashed twice. */
  #retake(id: string): void {
    const { redis, prefix, metrics } = this.#options
    const { token } = this.#inHand.get(id)?.job ?? {}
    if (token === undefined) return
    metrics.locksLost.inc()
    retakeLock(redis, prefix, { id, token }, LOCK_MS).then(
      () => this.#lockLost.warn(new Error('it was not renewed in time'), { jobId: id }),
      (error: unknown) => this.#lockLost.warn(error, { jobId: id }),
    )
  }
}

/** BullMQ's error codes for a job that another worker has taken, or that has ended. */
const LOCK_CODES: ReadonlySet<unknown> = new Set([
  ErrorCode.JobLockNotExist,
  ErrorCode.JobNotInState,
  ErrorCode.JobLockMismatch,
])

/** A lost lock is not a failure of the queue: it is retaken, or another worker has the job. */
function isOfLock(error: Error): boolean {
  return ('code' in error && LOCK_CODES.has(error.code)) || error.message.startsWith('could not renew lock')
}

/** The ids of a job and its request, for log lines. Its data is not trusted. */
function idsOf({ id, data }: Job<unknown>) {
  return { jobId: id, requestId: isJobData(data) ? data.requestId : undefined }
}

// How many jobs a worker has in hand.

/** A shorter wait is not a backlog: on a busy machine, a job waits even in an empty queue. */
const BACKLOG_MS = 100
/** Above this batch time (ms), prefetch nothing: a prefetched login would wait for a batch. */
const LONG_BATCH_MS = 150

interface JobsInHandOptions {
  slots: number
  batchWidth(): number
  batchMs(): number
}

/**
 * The limit of jobs in hand. While jobs wait in the queue, a free slot must find a full batch at
 * once. While no job waits, another worker may have a free slot, where a job begins sooner.
 */
export class JobsInHand {
  readonly #options: JobsInHandOptions
  #jobsWait = false
  #isBacklog = false

  constructor(options: JobsInHandOptions) {
    this.#options = options
  }

  limit(): number {
    const { slots, batchWidth, batchMs } = this.#options
    if (!this.#isBacklog) return slots
    return batchMs() > LONG_BATCH_MS ? slots * batchWidth() : jobsUnderLoad(slots, batchWidth())
  }

  /** Records how many jobs waited when the queue was read. */
  queueRead(waiting: number): void {
    this.#jobsWait = waiting > 0
  }

  taken(queueWaitMs: number): void {
    this.#isBacklog = this.#jobsWait && queueWaitMs >= BACKLOG_MS
  }
}

// One job.

/**
 * The job was not sealed with our keys for this id, name and deadline. BullMQ does not retry an
 * UnrecoverableError, however many attempts the job asks for.
 */
export class ForgedJobError extends UnrecoverableError {
  override readonly name = 'ForgedJobError'
  readonly code = 'forged_job'

  constructor(message: string) {
    super(message)
    // BullMQ stores the stack with the job. Frames would be larger than the job.
    this.stack = `${this.name}: ${message}`
  }
}

/** No field is trusted. */
type IncomingJob = Pick<Job<unknown>, 'name' | 'data'> & Partial<Pick<Job, 'id' | 'opts'>>

/**
 * Throws {@link ForgedJobError} when the payload does not open.
 *
 * @param taken called with the time in the queue, before hashing
 */
export async function processJob(
  incoming: IncomingJob,
  parts: JobParts,
  taken?: (queueWaitMs: number) => void,
): Promise<JobResult> {
  const { clock, keyring, metrics, tracing } = parts
  // The trace of a job is active until the first await.
  const traces = tracing?.telemetry.contextManager
  const trace = traces?.active()
  const log = tracing ? parts.log.child({ traceId: tracing.traceId() }) : parts.log
  const { job, data } = parseJob(incoming, metrics)
  const about = { jobId: job.id, requestId: data.requestId }
  const queueWaitMs = Math.max(0, clock.now() - data.enqueuedAt)
  taken?.(queueWaitMs)
  metrics.queueWait.observe({ job: job.name }, queueWaitMs / 1_000)
  if (!(await isClientPresent(job, data, parts))) {
    metrics.jobs.inc({ job: job.name, outcome: 'skipped' })
    log.info({ ...about, job: job.name, outcome: 'skipped', queueWaitMs }, 'job skipped: its client is away')
    return { outcome: 'skipped', queueWaitMs, serviceMs: 0 }
  }

  const request = requestOf(job, data.sealed, parts)
  const hasher = parts.hasher.ofOwner('owner' in request ? request.owner : undefined)
  const startedAt = performance.now()
  const performing: PerformOptions = {
    hasher,
    // Logged after the answer, which must not be later than the answer to a wrong password.
    refused: (error) => void setImmediate(() => log.error({ ...about, err: error }, 'job refused')),
    rehashed: (from) => metrics.rehashes.inc({ from }),
  }
  const work = () => ('storedHash' in request ? performVerify(request, performing) : performHash(request, performing))
  const traced = () => (tracing && traces ? traces.with(trace, () => tracing.inSpan(job.name, {}, work)) : work())
  const { result, algorithm, upgrade }: Performed = await traced()
  const serviceMs = performance.now() - startedAt
  parts.estimate.finished(serviceMs)
  metrics.service.observe({ job: job.name, algorithm }, serviceMs / 1_000)

  // A client can have come back with a ticket if the job was ticketed, or has waited beyond the
  // first hold.
  const { heldUntil = data.presentUntil } = data
  const mayBeRedeemed = incoming.opts?.priority !== undefined || clock.now() >= heldUntil
  const redeemerKey = mayBeRedeemed ? presentKey(parts.prefix, job.id) : undefined
  /**
   * Not awaited before BullMQ's completion of the job: Redis runs a connection's commands in order,
   * and the slot gets its next job one round trip earlier.
   */
  const send = (to: JobRef, sealed: Result) =>
    sendResult(to, keyring.seal(resultSeal(to), sealed), { replyTo: data.replyTo, redeemerKey }, parts)
  send(job, result).then(
    () => {
      const outcome = result.kind === 'refused' ? result.code : 'hashed'
      metrics.jobs.inc({ job: job.name, outcome })
      log.info({ ...about, job: job.name, outcome, queueWaitMs, serviceMs: round(serviceMs) }, 'job answered')
    },
    (error: unknown) => {
      metrics.jobs.inc({ job: job.name, outcome: 'undelivered' })
      log.error({ ...about, job: job.name, outcome: 'undelivered', err: error }, 'result not stored')
    },
  )
  // A lost new hash is made again at the next login.
  if (upgrade !== undefined)
    send(upgradeOf(job), await upgrade()).catch((error: unknown) =>
      log.warn({ ...about, err: error }, 'a new hash was lost'),
    )
  return { outcome: 'answered', queueWaitMs, serviceMs: round(serviceMs) }
}

/**
 * Whether the job's client will be there for its result: see order.ts. A worker with no other job
 * in hand hashes for any client that is there: otherwise a wrong estimate of the time would stay.
 */
async function isClientPresent(
  job: JobRef,
  { presentUntil }: JobData,
  { redis, prefix, clock, estimate, liveness }: JobParts,
): Promise<boolean> {
  const now = clock.now()
  const fits = (untilMs: number) =>
    liveness.active() === 1 ? untilMs > now : isPresent(untilMs, now, estimate.latencyMs())
  return fits(presentUntil) || fits(now + (await redis.pttl(presentKey(prefix, job.id))))
}

/**
 * Stores a result until its job's deadline, and announces it where its client may wait. It is also
 * announced if a full Redis refuses to store it: held requests then get it.
 */
async function sendResult(
  job: JobRef,
  sealed: string,
  { replyTo, redeemerKey }: { replyTo: string; redeemerKey: string | undefined },
  { redis, prefix, clock }: JobParts,
): Promise<void> {
  const keepMs = Math.max(1, job.deadline - clock.now())
  const announce = (to: string) => redis.publish(replyChannel(prefix, to), encodeReply(job.id, sealed))
  async function announceToRedeemer(key: string): Promise<void> {
    const redeemedAt = await redis.get(key)
    if (redeemedAt !== null && redeemedAt !== replyTo) await announce(redeemedAt)
  }
  await Promise.all([
    redis.set(resultKey(prefix, job.id), sealed, 'PX', keepMs),
    announce(replyTo),
    redeemerKey === undefined ? undefined : announceToRedeemer(redeemerKey),
  ])
}

/**
 * Tells the gateway to which the client of a skipped job has come back. Called after the job's
 * completion: a gateway that reads the job earlier marks its client first.
 */
export async function announceSkip(
  jobId: string,
  { redis, prefix }: { redis: RedisConnection; prefix: string },
): Promise<void> {
  const redeemedAt = await redis.get(presentKey(prefix, jobId))
  if (redeemedAt !== null) await redis.publish(replyChannel(prefix, redeemedAt), encodeReply(jobId, SKIPPED))
}

function parseJob({ id, name, data }: IncomingJob, metrics: WorkerMetrics): { job: JobRef; data: JobData } {
  if (id === undefined || !isJobName(name) || !isJobData(data)) throw forged('the job is malformed', 'unknown', metrics)
  return { job: { id, name, deadline: data.deadline }, data }
}

function isJobName(name: string): name is JobName {
  return jobNames.some((known) => known === name)
}

/** The request of a job. Throws {@link ForgedJobError}. */
function requestOf(job: JobRef, sealed: string, { keyring, metrics }: JobParts): HashRequest | VerifyRequest {
  try {
    const request = keyring.open(requestSeal(job), sealed)
    if (job.name === 'hash' && isHashRequest(request)) return request
    if (job.name === 'verify' && isVerifyRequest(request)) return request
  } catch (error) {
    if (!(error instanceof SealError)) throw error
    metrics.sealFailures.inc({ purpose: 'request' })
    throw forged('the sealed request does not open', job.name, metrics)
  }
  throw forged('the sealed request is malformed', job.name, metrics)
}

/** Received names would create metric series without a bound. */
function forged(reason: string, job: JobName | 'unknown', metrics: WorkerMetrics): ForgedJobError {
  metrics.jobs.inc({ job, outcome: 'forged' })
  return new ForgedJobError(reason)
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
