/** Adds jobs to the lanes of the queue, and takes back those that no request waits for any more. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@spillway/common/throttled-warning'
import type { Queue, Telemetry } from 'bullmq'
import { orQueueUnavailable, PasswordClientError } from '../errors.js'
import { openQueue, removeWaitingJob } from '../jobs/jobs.js'
import { bringForward, promoteOldestDeferred } from '../jobs/lanes.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import type { RedisWatch } from '../redis/watch.js'
import { BEHIND_PRIORITY, DEFERRED_PRIORITY, type JobData, type Lane } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'

/** How long a new job waits for a connection that was just lost. */
const RECONNECT_WAIT_MS = 500
const RECONNECT_POLL_MS = 25
const CANCEL_INTERVAL_MS = 500

/** BullMQ's: the least goes first, after the jobs without one. */
const priorities: Partial<Record<Lane, number>> = { deferred: DEFERRED_PRIORITY, behind: BEHIND_PRIORITY }

interface ProducerOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
  watch: RedisWatch
  telemetry?: Telemetry | undefined
  /** The W3C trace context of the moment, if `telemetry` adds no context. */
  traceparent?: (() => string | undefined) | undefined
}

export class Producer {
  readonly #options: ProducerOptions
  readonly #queue: Queue
  /** Jobs whose cancellation Redis did not answer. */
  readonly #uncancelled = new Map<string, JobRef>()
  readonly #timer: NodeJS.Timeout
  #isCancelling = false

  constructor(options: ProducerOptions) {
    this.#options = options
    this.#queue = openQueue(options)
    this.#timer = setInterval(() => void this.#cancelAgain(), CANCEL_INTERVAL_MS).unref()
  }

  /** Waits briefly for a connection that is replaced. Throws `queue_unavailable`. */
  async connected(): Promise<void> {
    if (await this.#isReadyWithin(RECONNECT_WAIT_MS)) return
    throw new PasswordClientError('queue_unavailable', 'there is no connection to Redis')
  }

  /** Adds a job; one with the same id keeps its place. Throws `queue_unavailable`. */
  async add(job: JobRef, data: JobData, lane: Lane): Promise<void> {
    const priority = priorities[lane]
    const options = {
      jobId: job.id,
      ...(priority === undefined ? {} : { priority }),
      ...traceOptions(this.#options.traceparent?.()),
    }
    await orQueueUnavailable(this.#queue.add(job.name, data, options), 'the job could not be added')
  }

  /** Adds a job, and tries once more on the next connection if this one breaks. */
  async addWithRetry(job: JobRef, data: JobData, lane: Lane): Promise<void> {
    try {
      await this.add(job, data, lane)
    } catch (error) {
      if (this.#options.redis.status === 'ready' || !(await this.#isReadyWithin(RECONNECT_WAIT_MS))) throw error
      await this.add(job, data, lane)
    }
  }

  /** Promotes deferred jobs in return for one that overtook them, unless that fails. */
  promoteOldestDeferred(): void {
    const { redis, prefix, log } = this.#options
    promoteOldestDeferred(redis, prefix).catch((error: unknown) =>
      log.debug({ err: error }, 'no deferred jobs were promoted'),
    )
  }

  /** Gives a job of a known device its place. If that fails, it keeps a held job's. */
  bringForward(jobId: string): void {
    const { redis, prefix, log } = this.#options
    bringForward(redis, prefix, jobId).catch((error: unknown) =>
      log.debug({ err: error, jobId }, 'a job of a known device was not brought forward'),
    )
  }

  /**
   * True when the job was removed before a worker took it. While Redis does not answer, it is tried
   * again until the job's deadline: time-outs leave no work behind.
   */
  async cancel(job: JobRef): Promise<boolean> {
    const { redis, prefix } = this.#options
    try {
      const removed = await removeWaitingJob(redis, prefix, job.id)
      this.#uncancelled.delete(job.id)
      return removed
    } catch {
      this.#uncancelled.set(job.id, job)
      return false
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#queue.close()
  }

  /** One after the other, until one fails again. */
  async #cancelAgain(): Promise<void> {
    const { redis, clock } = this.#options
    // Bounds the memory in a long outage: workers drop a job after its deadline.
    for (const { id, deadline } of this.#uncancelled.values()) if (clock.now() >= deadline) this.#uncancelled.delete(id)
    if (this.#isCancelling || redis.status !== 'ready') return
    this.#isCancelling = true
    for (const job of [...this.#uncancelled.values()]) {
      if (!(await this.cancel(job)) && this.#uncancelled.has(job.id)) break
    }
    this.#isCancelling = false
  }

  async #isReadyWithin(timeMs: number): Promise<boolean> {
    for (const end = performance.now() + timeMs; performance.now() < end; await sleep(RECONNECT_POLL_MS)) {
      if (this.#options.redis.status === 'ready') return true
    }
    return false
  }
}

/** The header's form (W3C Trace Context, 3.2). Anything else is not stored in Redis. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

function traceOptions(traceparent: string | undefined): { telemetry?: { metadata: string } } {
  if (traceparent === undefined || !TRACEPARENT.test(traceparent)) return {}
  return { telemetry: { metadata: JSON.stringify({ traceparent }) } }
}
