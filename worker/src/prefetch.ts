/**
 * A slot that has to fetch its next job stands idle for two round trips to Redis and for as long as opening the job takes: a
 * twentieth of its time with argon2id. While there is more to do than can be done, one job is therefore fetched ahead.
 */
import type { JobResult } from './protocol/job.js'

/**
 * In hashes. With that much waiting there is a job for every slot of every worker, so that one which is fetched early and waits
 * here keeps nobody else's slot idle. (Its price: it can no longer be taken back when its client leaves.)
 */
const WAIT_BEFORE = 1

/** How many jobs to fetch ahead of the slots, by what the last one went through. */
export function jobsAhead({ queueWaitMs, serviceMs }: Pick<JobResult, 'queueWaitMs' | 'serviceMs'>): number {
  return queueWaitMs > WAIT_BEFORE * serviceMs ? 1 : 0
}
