/** Resuming a job by its ticket: this process follows the job until its verdict comes, whichever gateway added it. */
import { orQueueUnavailable, PasswordClientError } from '../errors.js'
import { leave, presentMs, readTicket } from '../jobs/ticket.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import type { JobRef } from '../wire/reply.js'
import type { Answers, ResumedJob } from './answers.js'
import type { Expectations } from './expectation.js'

/** Requests of one gateway that may wait for the same job: enough for a client that lost some connections. */
const REDEEMERS_MAX = 8

export interface Resuming {
  /** Waits for a job that is held for so long, in milliseconds; its client is present meanwhile [true]. */
  resume(job: JobRef, holdMs?: number, isPresent?: boolean): Promise<ResumedJob>
  /** The client of a ticket disconnected. Never rejects. */
  left(job: JobRef): Promise<void>
}

export function createResume(deps: {
  redis: RedisConnection
  /** Of this Redis server. */
  id: string
  prefix: string
  clock: RedisClock
  replyTo: string
  answers: Answers
  expectations: Expectations
}): Resuming {
  const { redis, id, prefix, clock, replyTo, answers, expectations } = deps
  const { redeeming } = answers

  return {
    async resume(job, holdMs = job.deadline - clock.now(), isPresent = true) {
      if (redeeming.holders(job.id) >= REDEEMERS_MAX)
        throw new PasswordClientError('held_too_often', 'enough connections wait for this job already')
      const waiter = redeeming.hold(job)
      try {
        const forMs = presentMs(holdMs, job.deadline - clock.now())
        const reading = readTicket(redis, prefix, job, isPresent ? { replyTo, forMs } : undefined)
        const state = await orQueueUnavailable(reading, 'the verdict could not be asked for')
        const asked = expectations.of(job, state)
        if (asked.sealed !== undefined) answers.stored({ jobId: job.id, sealed: asked.sealed })
        return {
          ...answers.pendingRedeemed(waiter, { asked, ask: () => expectations.ask(job) }),
          // Where this is the only server that is known here, the job may be on another.
          isLost: !state.exists && state.verdict === undefined && (job.server ?? id) === id,
        }
      } catch (error) {
        redeeming.release(job.id)
        throw error
      }
    },
    async left(job) {
      // A page that reloads may be back before its old connection is known to be gone.
      if (redeeming.holders(job.id) > 0) return
      // Where Redis does not say, it is present for some seconds more.
      await leave(redis, prefix, job.id, replyTo).catch(() => undefined)
    },
  }
}
