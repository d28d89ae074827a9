/**
 * Requeues orphaned jobs. Redis made them active for this worker, but the reply was lost with the connection, or came when the worker had
 * stopped taking jobs. Nobody works on them, and stall recovery would take them up only when their locks have expired.
 */

import type { Logger } from '@spillway/common/log'
import { type LockedJob, lockedJobs } from '@spillway/queue/jobs/jobs'
import { readJob } from '@spillway/queue/jobs/open-queue'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { Queue } from 'bullmq'
import type { WorkerMetrics } from '../ops/metrics.js'

/** How long after its reply a job is in hand at the latest, in milliseconds. The event loop never hashes, so it is less. */
const SETTLE_MS = 50

export interface OrphanedJobsOptions {
  redis: RedisConnection
  prefix: string
  queue: Queue
  /** Of BullMQ's Worker. */
  consumerId: string
  isInHand(jobId: string): boolean
  log: Logger
  metrics: Pick<WorkerMetrics, 'requeued'>
}

export interface OrphanedJobs {
  /** Requeues those that there are now. For a worker that takes no more jobs. */
  requeueAll(): Promise<void>
  close(): void
}

/**
 * Looks for orphaned jobs whenever the connection is ready again. The nodes of a Cluster come and go without that being told: there,
 * stall recovery takes such jobs up.
 */
export function watchForOrphanedJobs(options: OrphanedJobsOptions): OrphanedJobs {
  const { redis, prefix, queue, consumerId, isInHand, log, metrics } = options
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  /** BullMQ refuses to move a job whose lock has another token, or no token: a job that was finished or taken over meanwhile stays. */
  async function requeue(id: string, token: string): Promise<void> {
    const job = await readJob(queue, id)
    if (job === undefined || job === 'malformed') return
    await job.moveToWait(token)
    metrics.requeued.inc()
    log.warn({ jobId: id }, 'orphaned job requeued: the reply with it was lost')
  }

  const tolerate = (error: unknown) => log.warn({ err: error }, 'orphaned jobs are left to stall recovery')

  async function suspected(): Promise<LockedJob[]> {
    return (await lockedJobs(redis, prefix, consumerId)).filter(({ id }) => !isInHand(id))
  }

  /** Replies come in the order of their commands: every job that was taken before this reading is in hand soon after it. */
  async function look(): Promise<void> {
    const suspects = await suspected()
    if (isClosed || suspects.length === 0) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      for (const { id, token } of suspects) if (!isInHand(id)) requeue(id, token).catch(tolerate)
    }, SETTLE_MS)
  }

  const onReady = () => void look().catch(tolerate)
  redis.on('ready', onReady)

  return {
    async requeueAll() {
      for (const { id, token } of await suspected()) await requeue(id, token).catch(tolerate)
    },
    close() {
      isClosed = true
      redis.off('ready', onReady)
      clearTimeout(timer)
    },
  }
}
