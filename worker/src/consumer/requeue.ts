/** A stopping worker requeues the jobs that it cannot finish in time. */
import type { Job } from 'bullmq'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { Logger } from '../process/log.js'

/**
 * Moves jobs back to the front of the queue, in their order. A job that cannot be moved is left to stall recovery: another worker
 * may have taken it already.
 */
export async function requeueUnfinished(
  jobs: Job[],
  { log, metrics }: { log: Logger; metrics: WorkerMetrics },
): Promise<void> {
  const requeuing = jobs.toReversed().map(async (job) => {
    try {
      await job.moveToWait(job.token)
      metrics.requeued.inc()
      log.warn({ jobId: job.id }, 'job requeued unfinished')
    } catch (error) {
      log.warn({ jobId: job.id, err: error }, 'job could not be requeued')
    }
  })
  await Promise.all(requeuing)
}
