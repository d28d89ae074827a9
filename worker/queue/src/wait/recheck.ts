/**
 * Asks Redis about the jobs that requests wait for. A message is lost with its connection, and a
 * job with a server that had not persisted it; in a Cluster neither need break a connection of this
 * process.
 */

import { ThrottledWarning } from '@spillway/common/throttled-warning'
import { findJobs } from '../jobs/jobs.js'
import type { Logger } from '../logger.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import type { Answers } from './answers.js'
import type { Cancellation } from './cancellation.js'
import type { Producer } from './producer.js'
import type { Waiter } from './waiters.js'

interface RecheckOptions {
  redis: RedisConnection
  prefix: string
  clock: RedisClock
  log: Logger
  answers: Pick<Answers, 'submitted' | 'redeeming' | 'offer' | 'failed'>
  producer: Pick<Producer, 'add'>
  cancellation: Cancellation
  /** Called for each job that was lost and has been added again. */
  addedAgain(): void
}

export class Recheck {
  readonly #options: RecheckOptions
  readonly #failed
  #isRunning = false

  constructor(options: RecheckOptions) {
    this.#options = options
    this.#failed = new ThrottledWarning(options.log, 'waiting jobs could not be checked')
  }

  /** To be called whenever something may have been lost. Does nothing while a check runs. */
  readonly run = async (): Promise<void> => {
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      await this.#check()
    } catch (error) {
      this.#failed.warn(error)
    } finally {
      this.#isRunning = false
    }
  }

  async #check(): Promise<void> {
    const { redis, prefix, answers } = this.#options
    const { submitted, redeeming } = answers
    const jobIds = [...submitted.jobIds(), ...redeeming.jobIds()]
    if (jobIds.length === 0 || redis.status !== 'ready') return
    const { verdicts, lost, failed } = await findJobs(redis, prefix, jobIds)
    for (const [jobId, sealed] of Object.entries(verdicts)) answers.offer({ jobId, sealed }, 'asked')
    for (const jobId of failed) answers.failed(jobId)
    const additions = await Promise.allSettled(lost.map((jobId) => this.#addAgain(submitted.get(jobId))))
    // One failure is reported for all: they have the same cause.
    const failure = additions.find((addition) => addition.status === 'rejected')
    if (failure) throw failure.reason
  }

  async #addAgain(waiter: Waiter | undefined): Promise<void> {
    const { clock, producer, cancellation, addedAgain } = this.#options
    if (waiter?.data === undefined || clock.now() >= waiter.job.deadline) return
    await producer.add(waiter.job, waiter.data, 'held')
    addedAgain()
    // Withdrawn meanwhile: its cancellation may have passed the addition. A wait that has only
    // ended leaves the job to its ticket.
    if (waiter.data === undefined) await cancellation.cancel(waiter.job)
  }
}
