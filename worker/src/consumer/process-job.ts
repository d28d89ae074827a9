/** Processes one job: presence, seal, hashing, and the result, sealed, stored and announced. */
import type { Logger } from '@spillway/common/log'
import { isPresent } from '@spillway/queue/order'
import type { RedisClock } from '@spillway/queue/redis/clock'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import {
  type HashRequest,
  isHashRequest,
  isJobData,
  isVerifyRequest,
  type JobData,
  type JobName,
  type JobResult,
  jobNames,
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
import { type Job, UnrecoverableError } from 'bullmq'
import type { CapacityEstimate } from '../hashing/capacity-estimate.js'
import type { Hasher } from '../hashing/index.js'
import { type Performed, type PerformOptions, performHash, performVerify } from '../hashing/perform.js'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { Liveness } from './liveness.js'

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
}

interface ProcessOptions extends JobParts {
  /** Runs the hashing in a span of the job's trace [no trace]. */
  inSpan?(name: string, work: () => Promise<Performed>): Promise<Performed>
  taken?(queueWaitMs: number): void
}

/** No field is trusted. */
type IncomingJob = Pick<Job<unknown>, 'name' | 'data'> & Partial<Pick<Job, 'id' | 'opts'>>

/** Throws {@link ForgedJobError} when the payload does not open. */
export async function processJob(incoming: IncomingJob, options: ProcessOptions): Promise<JobResult> {
  const { clock, keyring, log, metrics } = options
  const { job, data } = parseJob(incoming, metrics)
  const about = { jobId: job.id, requestId: data.requestId }
  const queueWaitMs = Math.max(0, clock.now() - data.enqueuedAt)
  options.taken?.(queueWaitMs)
  metrics.queueWait.observe({ job: job.name }, queueWaitMs / 1_000)
  if (!(await isClientPresent(job, data, options))) {
    metrics.jobs.inc({ job: job.name, outcome: 'skipped' })
    log.info({ ...about, job: job.name, outcome: 'skipped', queueWaitMs }, 'job skipped: its client is away')
    return { outcome: 'skipped', queueWaitMs, serviceMs: 0 }
  }

  const request = requestOf(job, data.sealed, options)
  const hasher = options.hasher.ofOwner('owner' in request ? request.owner : undefined)
  const startedAt = performance.now()
  const performing: PerformOptions = {
    hasher,
    // Logged after the answer, which must not be later than the answer to a wrong password.
    refused: (error) => void setImmediate(() => log.error({ ...about, err: error }, 'job refused')),
    rehashed: (from) => metrics.rehashes.inc({ from }),
  }
  const work = () => perform(request, performing)
  const { result, algorithm, upgrade } = await (options.inSpan?.(job.name, work) ?? work())
  const serviceMs = performance.now() - startedAt
  options.estimate.finished(serviceMs)
  metrics.service.observe({ job: job.name, algorithm }, serviceMs / 1_000)

  // A client can have come back with a ticket if the job was ticketed, or has waited beyond the
  // first hold.
  const { heldUntil = data.presentUntil } = data
  const mayBeRedeemed = incoming.opts?.priority !== undefined || clock.now() >= heldUntil
  const redeemerKey = mayBeRedeemed ? presentKey(options.prefix, job.id) : undefined
  /**
   * Not awaited before BullMQ's completion of the job: Redis runs a connection's commands in order,
   * and the slot gets its next job one round trip earlier.
   */
  const send = (to: JobRef, sealed: Result) =>
    sendResult(to, keyring.seal(resultSeal(to), sealed), { replyTo: data.replyTo, redeemerKey }, options)
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
  { redis, prefix, clock, estimate, liveness }: ProcessOptions,
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
  { redis, prefix, clock }: ProcessOptions,
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

function perform(request: HashRequest | VerifyRequest, options: PerformOptions): Promise<Performed> {
  return 'storedHash' in request ? performVerify(request, options) : performHash(request, options)
}

function parseJob({ id, name, data }: IncomingJob, metrics: WorkerMetrics): { job: JobRef; data: JobData } {
  if (id === undefined || !isJobName(name) || !isJobData(data)) throw forged('the job is malformed', 'unknown', metrics)
  return { job: { id, name, deadline: data.deadline }, data }
}

function isJobName(name: string): name is JobName {
  return jobNames.some((known) => known === name)
}

/** The request of a job. Throws {@link ForgedJobError}. */
function requestOf(job: JobRef, sealed: string, { keyring, metrics }: ProcessOptions): HashRequest | VerifyRequest {
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
