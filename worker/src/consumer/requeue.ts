/** What a stopping worker does with the jobs that it cannot finish in time. */
import type { Job } from 'bullmq'
import type { WorkerMetrics } from '../ops/metrics.js'
import type { Logger } from '../process/log.js'

/**
 * Puts jobs back to the front of the queue, the first of them foremost. One that cannot be put back is left to whoever finds
 * its lock run out: it may be in the hands of another worker already.
 */
export async function handBack(jobs: Job[], { log, metrics }: { log: Logger; metrics: WorkerMetrics }): Promise<void> {
  const handingBack = jobs.toReversed().map(async (job) => {
    try {
      await job.moveToWait(job.token)
      metrics.handedBack.inc()
      log.warn({ jobId: job.id }, 'job handed back unfinished')
    } catch (error) {
      log.warn({ jobId: job.id, err: error }, 'job could not be handed back')
    }
  })
  await Promise.all(handingBack)
}
