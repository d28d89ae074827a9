/**
 * Asks Redis about the jobs that requests wait for. A message is lost with its connection, and a job with a server that had not
 * persisted it; in a Cluster neither need break a connection of this process.
 */

import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { findJobs } from '../jobs/jobs.js'
import type { Logger } from '../logger.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import type { JobData } from '../wire/job.js'
import type { Answers } from './answers.js'
import type { Cancellation } from './cancellation.js'
import type { Producer } from './producer.js'
import type { Waiter } from './waiters.js'

/** Returns a function to call whenever something may have been lost. Calls during a running check do nothing. */
export function createRecheck(options: {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
  answers: Pick<Answers, 'submitted' | 'redeeming' | 'offer' | 'failed'>
  producer: Producer
  cancellation: Cancellation
  /** Called for each job that was lost and has been added again. */
  addedAgain(): void
}): () => Promise<void> {
  const { redis, prefix, clock, log, answers, producer, cancellation, addedAgain } = options
  const { submitted, redeeming } = answers
  const checkFailed = new ThrottledWarning(log, 'waiting jobs could not be checked')
  let isChecking = false

  async function recheck(): Promise<void> {
    const jobIds = [...submitted.jobIds(), ...redeeming.jobIds()]
    if (jobIds.length === 0 || redis.status !== 'ready') return
    const { verdicts, lost, failed } = await findJobs(redis, prefix, jobIds)
    for (const [jobId, sealed] of Object.entries(verdicts)) answers.offer({ jobId, sealed }, 'asked')
    for (const jobId of failed) answers.failed(jobId)
    await addAgain(lost.flatMap((jobId) => submitted.get(jobId) ?? []))
  }

  async function addAgain(lost: Waiter[]): Promise<void> {
    const additions = lost.flatMap((waiter) =>
      waiter.data === undefined || clock.now() >= waiter.job.deadline ? [] : [addOneAgain(waiter, waiter.data)],
    )
    const failures = (await Promise.allSettled(additions)).filter((addition) => addition.status === 'rejected')
    // One failure is reported for all: they have the same cause.
    if (failures[0]) throw failures[0].reason
  }

  async function addOneAgain(waiter: Waiter, data: JobData): Promise<void> {
    await producer.add(waiter.job, data, 'held')
    addedAgain()
    // Withdrawn meanwhile: its cancellation may have passed the addition. A wait that has only ended leaves the job to its ticket.
    if (waiter.data === undefined) await cancellation.cancel(waiter.job)
  }

  return async () => {
    if (isChecking) return
    isChecking = true
    try {
      await recheck()
    } catch (error) {
      checkFailed.warn(error)
    } finally {
      isChecking = false
    }
  }
}
