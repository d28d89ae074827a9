/** Resuming a job by its ticket: this process follows the job until its verdict comes, whichever gateway added it. */
import { orQueueUnavailable, PasswordClientError } from '../errors.js'
import type { JobRef } from '../protocol/reply.js'
import type { RedisClock } from '../redis/clock.js'
import type { Answers, PendingJob } from './answers.js'
import type { Expectations } from './expectation.js'
import type { Verdicts } from './verdicts.js'

/** Requests of one gateway that may wait for the same job: enough for a client that lost some connections. */
const REDEEMERS_MAX = 8

export type Resume = (job: JobRef) => Promise<PendingJob>

export function createResume(deps: {
  clock: RedisClock
  replyTo: string
  answers: Answers
  verdicts: Verdicts
  expectations: Expectations
}): Resume {
  const { clock, replyTo, answers, verdicts, expectations } = deps
  const { redeeming } = answers

  return async (job) => {
    if (redeeming.holders(job.id) >= REDEEMERS_MAX)
      throw new PasswordClientError('held_too_often', 'enough connections wait for this job already')
    const waiter = redeeming.hold(job)
    try {
      const followed = verdicts.follow(job, replyTo, job.deadline - clock.now())
      const sealed = await orQueueUnavailable(followed, 'the verdict could not be asked for')
      if (sealed !== undefined) answers.stored({ jobId: job.id, sealed })
      return answers.pendingRedeemed(waiter, () => expectations.of(job.id))
    } catch (error) {
      redeeming.release(job.id)
      throw error
    }
  }
}
