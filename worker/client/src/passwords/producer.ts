/** The gateway's end of the queue: adding jobs in either lane. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Telemetry } from 'bullmq'
import { PasswordClientError } from '../errors.js'
import type { Logger } from '../logger.js'
import { DEFERRED_PRIORITY, type JobData, type Lane } from '../protocol/job.js'
import type { JobRef } from '../protocol/reply.js'
import { openQueue } from '../queue/open-queue.js'
import { promoteOldestDeferred } from '../queue/promote-oldest-deferred.js'
import type { RedisConnection } from '../redis/connect.js'
import type { RedisWatch } from '../redis/watch.js'
import { orQueueUnavailable } from './queue-unavailable.js'

/** How long a new job waits for a connection that was just lost. */
const RECONNECT_PATIENCE_MS = 500
const RECONNECT_POLL_MS = 25

export interface Producer {
  /**
   * Resolves when there is a connection to send by: one that is being replaced is waited for, so that a cut of a moment is
   * noticed by nobody. Throws `queue_unavailable`.
   */
  connected(): Promise<void>
  /** Adds a job; one whose id is taken keeps its place. Throws `queue_unavailable` when Redis does not take it. */
  add(job: JobRef, data: JobData, lane: Lane): Promise<void>
  /** The same, but where the connection breaks on the way, once more on the next. */
  addDespiteCut(job: JobRef, data: JobData, lane: Lane): Promise<void>
  /** Lets a deferred job in for the held one that went before it. Nobody waits for this: where it fails, the next one does it. */
  promoteOldestDeferred(): void
  close(): Promise<void>
}

export function createProducer(options: {
  redis: RedisConnection
  prefix: string
  log: Logger
  watch: RedisWatch
  telemetry?: Telemetry | undefined
}): Producer {
  const { redis, prefix, log } = options
  const queue = openQueue(options)

  async function add(job: JobRef, data: JobData, lane: Lane): Promise<void> {
    const priority = lane === 'deferred' ? { priority: DEFERRED_PRIORITY } : {}
    await orQueueUnavailable(queue.add(job.name, data, { jobId: job.id, ...priority }), 'the job could not be added')
  }

  async function isReadyWithin(patienceMs: number): Promise<boolean> {
    for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(RECONNECT_POLL_MS)) {
      if (redis.status === 'ready') return true
    }
    return false
  }

  return {
    add,
    async connected() {
      if (await isReadyWithin(RECONNECT_PATIENCE_MS)) return
      throw new PasswordClientError('queue_unavailable', 'there is no connection to add the job by')
    },
    async addDespiteCut(job, data, lane) {
      try {
        await add(job, data, lane)
      } catch (error) {
        if (redis.status === 'ready' || !(await isReadyWithin(RECONNECT_PATIENCE_MS))) throw error
        await add(job, data, lane)
      }
    },
    promoteOldestDeferred() {
      promoteOldestDeferred(redis, prefix).catch((error: unknown) =>
        log.debug({ err: error }, 'no deferred job was brought along'),
      )
    },
    close: () => queue.close(),
  }
}
