/** Processes one job: checks its deadline, opens the request, hashes or verifies, seals the verdict and delivers it. */

import {
  isHashRequest,
  isJobData,
  isVerifyRequest,
  type JobData,
  type JobName,
  type JobResult,
  jobNames,
  type Verdict,
  type VerifyRequest,
} from '@spillway/client/protocol/job'
import { type JobRef, requestSeal, verdictSeal } from '@spillway/client/protocol/reply'
import { type Keyring, SealError } from '@spillway/client/protocol/seal'
import type { RedisClock } from '@spillway/client/redis/clock'
import { UnrecoverableError } from 'bullmq'
import type { AlgorithmName } from '../hashing/algorithm-name.js'
import { type Hasher, UnsupportedHashError } from '../hashing/index.js'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { Logger } from '../process/log.js'
import type { Tracing } from '../process/tracing.js'
import type { Delivery } from './deliver.js'

/**
 * The job was not sealed with the keys of this service for this id, name and deadline. An UnrecoverableError is not retried, however
 * many attempts the job itself asks for.
 */
export class ForgedJobError extends UnrecoverableError {
  override readonly name = 'ForgedJobError'
  readonly code = 'forged_job'

  constructor(message: string) {
    super(message)
    // BullMQ stores the stack with the job: stack frames would take more space than the rest of it and say nothing.
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
  delivery: Pick<Delivery, 'deliver'>
  /** Called with the time that the job has waited, in milliseconds. */
  taken?(queueWaitMs: number): void
}

/** The fields of a BullMQ job that are used here. None of them can be trusted. */
export interface IncomingJob {
  id?: string
  name: string
  data: unknown
}

/** Processes one job. Throws {@link ForgedJobError} when the payload does not open; every other outcome is a result. */
export async function processJob(incoming: IncomingJob, options: ProcessOptions): Promise<JobResult> {
  const { clock, log, metrics } = options
  const { job, data } = parseJob(incoming, metrics)
  const startedAt = clock.now()
  const queueWaitMs = Math.max(0, startedAt - data.enqueuedAt)
  options.taken?.(queueWaitMs)
  metrics.queueWait.observe({ job: job.name }, queueWaitMs / 1_000)
  if (startedAt >= job.deadline) {
    metrics.jobs.inc({ job: job.name, outcome: 'expired' })
    log.info({ jobId: job.id, job: job.name, outcome: 'expired', queueWaitMs }, 'job dropped')
    return { outcome: 'expired', queueWaitMs, serviceMs: 0 }
  }

  const hashing = performance.now()
  const work = () => answer(job, data, options)
  const { verdict, algorithm } = await (options.tracing?.inSpan(job.name, {}, work) ?? work())
  const serviceMs = performance.now() - hashing
  metrics.service.observe({ job: job.name, algorithm }, serviceMs / 1_000)

  // Not awaited: BullMQ's completion follows on the same connection, so Redis runs it after this, and the slot gets its next job one
  // round trip earlier.
  options.delivery.deliver({ ...job, replyTo: data.replyTo }, options.keyring.seal(verdictSeal(job), verdict)).then(
    () => {
      const outcome = verdict.kind === 'refused' ? verdict.code : 'hashed'
      metrics.jobs.inc({ job: job.name, outcome })
      log.info({ jobId: job.id, job: job.name, outcome, queueWaitMs, serviceMs: round(serviceMs) }, 'job answered')
    },
    (error: unknown) => {
      metrics.jobs.inc({ job: job.name, outcome: 'undelivered' })
      log.error({ jobId: job.id, job: job.name, outcome: 'undelivered', err: error }, 'verdict lost')
    },
  )
  return { outcome: 'answered', queueWaitMs, serviceMs: round(serviceMs) }
}

function parseJob({ id, name, data }: IncomingJob, metrics: WorkerMetrics): { job: JobRef; data: JobData } {
  if (id === undefined || !isJobName(name) || !isJobData(data)) throw forged('the job is malformed', 'unknown', metrics)
  return { job: { id, name, deadline: data.deadline }, data }
}

function isJobName(name: string): name is JobName {
  return jobNames.some((known) => known === name)
}

/** A verdict, and the algorithm whose service time it took: for a decoy that of new hashes. */
interface Answered {
  verdict: Verdict
  algorithm: AlgorithmName
}

async function answer(job: JobRef, data: JobData, options: ProcessOptions): Promise<Answered> {
  const request = openRequest(job, data, options)
  if (job.name === 'hash' && isHashRequest(request)) {
    const hash = async (): Promise<Verdict> => ({ kind: 'hashed', hash: await options.hasher.hash(request.password) })
    return { verdict: await orRefusal(job, options, hash), algorithm: options.hasher.algorithm }
  }
  if (job.name === 'verify' && isVerifyRequest(request)) {
    const algorithm =
      request.storedHash === null ? options.hasher.algorithm : options.hasher.algorithmOf(request.storedHash)
    const verdict = await orRefusal(job, options, () => verifyOrDecoy(request, algorithm, options))
    const isDecoy = verdict.kind === 'refused' && verdict.code === 'unsupported_hash'
    return { verdict, algorithm: isDecoy ? options.hasher.algorithm : algorithm }
  }
  throw forged('the sealed request is malformed', job.name, options.metrics)
}

/** The verdict of the work, or `refused` when it fails. */
async function orRefusal(job: JobRef, { log }: ProcessOptions, work: () => Promise<Verdict>): Promise<Verdict> {
  try {
    return await work()
  } catch (error) {
    log.error({ jobId: job.id, err: error }, 'job refused')
    return { kind: 'refused', code: error instanceof UnsupportedHashError ? error.code : 'hashing_failed' }
  }
}

/** An unsupported stored hash costs a decoy: without it, the time would distinguish the account from others. */
async function verifyOrDecoy(
  request: VerifyRequest,
  algorithm: AlgorithmName,
  options: ProcessOptions,
): Promise<Verdict> {
  try {
    return await verify(request, algorithm, options)
  } catch (error) {
    if (error instanceof UnsupportedHashError) await options.hasher.decoy(request.password)
    throw error
  }
}

async function verify(
  { password, storedHash, nextPassword }: VerifyRequest,
  algorithm: AlgorithmName,
  { hasher, metrics }: ProcessOptions,
): Promise<Verdict> {
  if (storedHash === null) {
    await hasher.decoy(password)
    return { kind: 'mismatch' }
  }
  if (!(await hasher.verify(password, storedHash))) return { kind: 'mismatch' }
  if (nextPassword !== undefined) return { kind: 'match', hash: await hasher.hash(nextPassword) }
  if (!hasher.isBelow(storedHash)) return { kind: 'match' }
  const hash = await hasher.hash(password)
  metrics.rehashes.inc({ from: algorithm })
  return { kind: 'match', hash }
}

function openRequest(job: JobRef, data: JobData, { keyring, metrics }: ProcessOptions): unknown {
  try {
    return keyring.open(requestSeal(job), data.sealed)
  } catch (error) {
    if (!(error instanceof SealError)) throw error
    metrics.sealFailures.inc({ purpose: 'request' })
    throw forged('the sealed request does not open', job.name, metrics)
  }
}

/** Counts and creates the error. `job` is never the received name: forged jobs could create any number of metric series. */
function forged(reason: string, job: JobName | 'unknown', metrics: WorkerMetrics): ForgedJobError {
  metrics.jobs.inc({ job, outcome: 'forged' })
  return new ForgedJobError(reason)
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
