/** Adds jobs to the lanes of the queue. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Telemetry } from 'bullmq'
import { orQueueUnavailable, PasswordClientError } from '../errors.js'
import { bringForward, promoteOldestDeferred } from '../jobs/lanes.js'
import { openQueue } from '../jobs/open-queue.js'
import type { Logger } from '../logger.js'
import type { RedisConnection } from '../redis/connect.js'
import type { RedisWatch } from '../redis/watch.js'
import { BEHIND_PRIORITY, DEFERRED_PRIORITY, type JobData, type Lane } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'

/** How long a new job waits for a connection that was just lost. */
const RECONNECT_WAIT_MS = 500
const RECONNECT_POLL_MS = 25

export interface Producer {
  /** Waits briefly for a connection that is being replaced, so that short interruptions cause no error. Throws `queue_unavailable`. */
  connected(): Promise<void>
  /** Adds a job; a job with the same id keeps its place. Throws `queue_unavailable` when Redis does not accept it. */
  add(job: JobRef, data: JobData, lane: Lane): Promise<void>
  /** Adds a job, and tries once more on the next connection if this one breaks. */
  addWithRetry(job: JobRef, data: JobData, lane: Lane): Promise<void>
  /** Promotes deferred jobs in return for one that overtook them. Not awaited; a failure leaves them where they are. */
  promoteOldestDeferred(): void
  /** Gives a job of a known device its place. Not awaited; after a failure it keeps the place of any held job. */
  bringForward(jobId: string): void
  close(): Promise<void>
}

/** BullMQ's: the least goes first, after the jobs without one. */
const priorities: Partial<Record<Lane, number>> = { deferred: DEFERRED_PRIORITY, behind: BEHIND_PRIORITY }

export function createProducer(options: {
  redis: RedisConnection
  prefix: string
  log: Logger
  watch: RedisWatch
  telemetry?: Telemetry | undefined
  /** The W3C trace context of the moment, if `telemetry` adds no context. */
  traceparent?: (() => string | undefined) | undefined
}): Producer {
  const { redis, prefix, log, traceparent = () => undefined } = options
  const queue = openQueue(options)

  async function add(job: JobRef, data: JobData, lane: Lane): Promise<void> {
    const priority = priorities[lane]
    const jobOptions = {
      jobId: job.id,
      ...(priority === undefined ? {} : { priority }),
      ...traceOptions(traceparent()),
    }
    await orQueueUnavailable(queue.add(job.name, data, jobOptions), 'the job could not be added')
  }

  async function isReadyWithin(timeMs: number): Promise<boolean> {
    for (const end = performance.now() + timeMs; performance.now() < end; await sleep(RECONNECT_POLL_MS)) {
      if (redis.status === 'ready') return true
    }
    return false
  }

  return {
    add,
    async connected() {
      if (await isReadyWithin(RECONNECT_WAIT_MS)) return
      throw new PasswordClientError('queue_unavailable', 'there is no connection to Redis')
    },
    async addWithRetry(job, data, lane) {
      try {
        await add(job, data, lane)
      } catch (error) {
        if (redis.status === 'ready' || !(await isReadyWithin(RECONNECT_WAIT_MS))) throw error
        await add(job, data, lane)
      }
    },
    promoteOldestDeferred() {
      promoteOldestDeferred(redis, prefix).catch((error: unknown) =>
        log.debug({ err: error }, 'no deferred jobs were promoted'),
      )
    },
    bringForward(jobId) {
      bringForward(redis, prefix, jobId).catch((error: unknown) =>
        log.debug({ err: error, jobId }, 'a job of a known device was not brought forward'),
      )
    },
    close: () => queue.close(),
  }
}

/** The form of the header (W3C Trace Context, 3.2). Anything else is left out: it would be stored in Redis. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

function traceOptions(traceparent: string | undefined): { telemetry?: { metadata: string } } {
  if (traceparent === undefined || !TRACEPARENT.test(traceparent)) return {}
  return { telemetry: { metadata: JSON.stringify({ traceparent }) } }
}
