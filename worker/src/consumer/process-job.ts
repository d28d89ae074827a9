/** Processes one job: deadline, seal, hashing, sealed verdict, delivery. */
import type { Logger } from '@spillway/common/log'
import type { Tracing } from '@spillway/common/tracing'
import type { RedisClock } from '@spillway/queue/redis/clock'
import {
  type HashRequest,
  isHashRequest,
  isJobData,
  isVerifyRequest,
  type JobData,
  type JobName,
  type JobResult,
  jobNames,
  type Verdict,
  type VerifyRequest,
} from '@spillway/queue/wire/job'
import { type JobRef, requestSeal, upgradeOf, verdictSeal } from '@spillway/queue/wire/reply'
import { type Keyring, type SealContext, SealError } from '@spillway/queue/wire/seal'
import { type Job, UnrecoverableError } from 'bullmq'
import type { Hasher } from '../hashing/index.js'
import { type Performed, type PerformOptions, performHash, performVerify } from '../hashing/perform.js'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { Delivery } from './deliver.js'

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

export interface ProcessOptions {
  keyring: Keyring
  hasher: Hasher
  clock: RedisClock
  log: Logger
  metrics: WorkerMetrics
  tracing?: Pick<Tracing, 'inSpan'> | undefined
  delivery: Pick<Delivery, 'deliver' | 'stored' | 'setAside'>
  oldSystem?: PerformOptions['oldSystem']
  beside?: PerformOptions['beside']
  /** Leaves a job that does not open to a worker with other keys; false where it cannot [false]. */
  handBack?(data: JobData): Promise<boolean>
  taken?(queueWaitMs: number): void
  /** Whether a job would be answered too late [never]: it is dropped, and its client is told. */
  isTooLate?(leftMs: number, foretoldMs: number | undefined): boolean
  hashed?(serviceMs: number, foretoldMs: number | undefined): void
}

/** No field can be trusted. */
type IncomingJob = Pick<Job<unknown>, 'name' | 'data'> & Partial<Pick<Job, 'id' | 'attemptsStarted' | 'token'>>

/**
 * Throws {@link ForgedJobError} when the payload does not open. Undefined where the job was set
 * aside: it is no longer in this worker's hands.
 */
export async function processJob(incoming: IncomingJob, options: ProcessOptions): Promise<JobResult | undefined> {
  const { clock, delivery, keyring, log, metrics } = options
  const { job, data } = parseJob(incoming, metrics)
  const about = { jobId: job.id, requestId: data.requestId }
  const startedAt = clock.now()
  const queueWaitMs = Math.max(0, startedAt - data.enqueuedAt)
  options.taken?.(queueWaitMs)
  metrics.queueWait.observe({ job: job.name }, queueWaitMs / 1_000)
  const ended = (outcome: string, message: string, facts = {}): void => {
    metrics.jobs.inc({ job: job.name, outcome })
    log.info({ ...about, job: job.name, outcome, queueWaitMs, ...facts }, message)
  }
  const expired = (): JobResult => {
    ended('expired', 'job dropped')
    return { outcome: 'expired', queueWaitMs, serviceMs: 0 }
  }
  if (startedAt >= job.deadline) return expired()

  if (incoming.attemptsStarted !== 1 && (await hasVerdict(job, options)))
    return { outcome: 'answered', queueWaitMs, serviceMs: 0 }

  const opened = openedBy(keyring, requestSeal(job), data.sealed)
  if (opened === undefined) {
    if (await options.handBack?.(data)) return undefined
    metrics.sealFailures.inc({ purpose: 'request' })
    throw forged('the sealed request does not open', job.name, metrics)
  }
  const request = requestOf(job, opened.value, metrics)
  const leftMs = job.deadline - startedAt
  const hasher = options.hasher.ofOwner('owner' in request ? request.owner : undefined)
  const foretoldMs = hasher.foretell(request)
  /**
   * Not awaited before BullMQ's completion of the job: Redis runs a connection's commands in order,
   * and the slot gets its next job one round trip earlier.
   */
  const sendAhead = (verdict: Verdict, to: JobRef) =>
    delivery.deliver({ ...to, replyTo: data.replyTo }, keyring.seal(verdictSeal(to), verdict))
  if (options.isTooLate?.(leftMs, foretoldMs)) {
    // Where it is lost, the client waits until the deadline.
    sendAhead({ kind: 'refused', code: 'expired' }, job).catch(() => undefined)
    return expired()
  }

  const hashing = performance.now()
  let besideMs = 0
  const beside: PerformOptions['beside'] = async (answer) => {
    const since = performance.now()
    try {
      return await (options.beside?.(answer) ?? answer)
    } finally {
      besideMs += performance.now() - since
    }
  }
  const performing: Omit<PerformOptions, 'signal'> = {
    ...{ hasher, oldSystem: options.oldSystem, beside },
    // After the answer, which must not come later than to a wrong password.
    refused: (error) => void setImmediate(() => log.error({ ...about, err: error }, 'job refused')),
    rehashed: (from) => metrics.rehashes.inc({ from }),
  }
  const work = () => untilDeadline(leftMs, (signal) => perform(request, { ...performing, signal }))
  const performed = await (options.tracing?.inSpan(job.name, {}, work) ?? work())
  if (performed === undefined) return expired()
  const { verdict, algorithm, upgrade } = performed
  if (verdict.kind === 'refused' && verdict.code === 'unavailable') {
    ended(verdict.code, 'job set aside')
    const sealed = keyring.seal(verdictSeal(job), verdict)
    await delivery.setAside({ ...job, replyTo: data.replyTo }, incoming.token ?? '', sealed)
    return undefined
  }
  const serviceMs = performance.now() - hashing - besideMs
  options.hashed?.(serviceMs, foretoldMs)
  metrics.service.observe({ job: job.name, algorithm }, serviceMs / 1_000)

  sendAhead(verdict, job).then(
    () => {
      const outcome = verdict.kind === 'refused' ? verdict.code : 'hashed'
      ended(outcome, 'job answered', { serviceMs: round(serviceMs) })
    },
    (error: unknown) => {
      metrics.jobs.inc({ job: job.name, outcome: 'undelivered' })
      log.error({ ...about, job: job.name, outcome: 'undelivered', err: error }, 'verdict lost')
    },
  )
  // A lost one is made at the next login.
  if (upgrade !== undefined)
    sendAhead(await upgrade(), upgradeOf(job)).catch((error: unknown) =>
      log.warn({ ...about, err: error }, 'a new hash was lost'),
    )
  return { outcome: 'answered', queueWaitMs, serviceMs: round(serviceMs) }
}

function perform(request: HashRequest | VerifyRequest, options: PerformOptions): Promise<Performed> {
  return 'storedHash' in request ? performVerify(request, options) : performHash(request, options)
}

/** Whether another worker has answered the job. A verdict that does not open is no answer. */
async function hasVerdict(job: JobRef, { delivery, keyring }: ProcessOptions): Promise<boolean> {
  const sealed = await delivery.stored(job)
  return sealed !== undefined && openedBy(keyring, verdictSeal(job), sealed)?.value !== undefined
}

/** Undefined for a value that was not sealed with these keys for this job. */
function openedBy(keyring: Keyring, context: SealContext, sealed: string): { value: unknown } | undefined {
  try {
    return { value: keyring.open(context, sealed) }
  } catch (error) {
    if (error instanceof SealError) return undefined
    throw error
  }
}

function parseJob({ id, name, data }: IncomingJob, metrics: WorkerMetrics): { job: JobRef; data: JobData } {
  if (id === undefined || !isJobName(name) || !isJobData(data)) throw forged('the job is malformed', 'unknown', metrics)
  return { job: { id, name, deadline: data.deadline }, data }
}

function isJobName(name: string): name is JobName {
  return jobNames.some((known) => known === name)
}

/** The limit of a timer. */
const TIMER_MAX_MS = 2 ** 31 - 1

/** The result of the work; undefined where it had not begun at the deadline. */
async function untilDeadline<T>(leftMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
  const aborter = new AbortController()
  const timer = setTimeout(() => aborter.abort(), Math.min(leftMs, TIMER_MAX_MS))
  try {
    return await work(aborter.signal)
  } catch (error) {
    if (error === aborter.signal.reason && aborter.signal.aborted) return undefined
    throw error
  } finally {
    clearTimeout(timer)
  }
}

function requestOf(job: JobRef, request: unknown, metrics: WorkerMetrics): HashRequest | VerifyRequest {
  if (job.name === 'hash' && isHashRequest(request)) return request
  if (job.name === 'verify' && isVerifyRequest(request)) return request
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
