/**
 * Answers of jobs, handed to the requests of this process that wait for them. A verdict arrives as a message or is found in Redis;
 * it counts only once it has been opened.
 */

import { within } from '@spillway/common/within'
import { PasswordClientError } from '../errors.js'
import type { Verdict } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'
import type { Asked, Expectation } from './expectation.js'
import type { Verdicts } from './verdicts.js'
import { createWaiters, type Waiter, type Waiters } from './waiters.js'

/** How a verdict arrived: announced by the worker, or found by asking Redis because no announcement came. */
export type VerdictSource = 'message' | 'asked'

/** A job that has been added, here or by another gateway. */
export interface PendingJob {
  readonly job: JobRef
  /**
   * The answer, or undefined when `waitMs` ran out first; the job continues either way. Call it once for each PendingJob. Throws
   * `wait_aborted` when the signal fires.
   */
  answer(options: { waitMs: number; signal?: AbortSignal | undefined }): Promise<Verdict | undefined>
  /** What the job has to expect while there is no answer. Never rejects. */
  expectation(): Promise<Expectation>
}

/** A job that was added before, with what its ticket says. */
export interface ResumedJob extends PendingJob {
  /** Whether Redis has neither the job nor its verdict: there will be no answer. */
  readonly isLost: boolean
}

/** What is known of a job while there is no answer. */
interface Source {
  /** What was asked when its wait began, for an answer that does not wait. */
  asked?: Asked
  /** Asks Redis again, which finds a verdict whose message was lost or arrives this moment. Never rejects. */
  ask(): Promise<Asked>
  /** What is known without asking; undefined when that is too long ago. */
  known?(): Expectation | undefined
}

export interface Answers {
  /** Requests that wait for jobs that were added here. */
  submitted: Waiters
  /** Requests that wait for a job by its ticket. */
  redeeming: Waiters
  /** A verdict was announced. */
  announced(reply: { jobId: string; sealed: string }): void
  /** A verdict was found in Redis although it had not been announced. */
  found(reply: { jobId: string; sealed: string }): void
  /** A job has failed: there will be no verdict. */
  failed(jobId: string): void
  /** A verdict was stored before its ticket was redeemed. */
  stored(reply: { jobId: string; sealed: string }): void
  pendingSubmitted(waiter: Waiter, source: Source): PendingJob
  pendingRedeemed(waiter: Waiter, source: Source): PendingJob
}

/** @param received is called for each verdict that a waiting request gets */
export function createAnswers(verdicts: Verdicts, received: (source: VerdictSource) => void): Answers {
  const submitted = createWaiters()
  const redeeming = createWaiters()

  /** Settles the waiter of a job, if there is one and the value opens. */
  function offer(waiters: Waiters, { jobId, sealed }: { jobId: string; sealed: string }, source: VerdictSource): void {
    const waiter = waiters.get(jobId)
    const answer = waiter && verdicts.open(waiter.job, sealed)
    if (answer === undefined) return
    received(source)
    waiters.settle(jobId, answer)
  }

  function pending(waiters: Waiters, { job, answer: answered }: Waiter, source: Source): PendingJob {
    let { asked } = source
    return {
      job,
      async expectation() {
        const known = source.known?.()
        if (known !== undefined) return known
        const { expectation } = asked ?? (await source.ask())
        asked = undefined
        return expectation
      },
      async answer({ waitMs, signal }) {
        if (waitMs > 0) asked = undefined
        try {
          const answer = await within(waitMs, answered, signal)
          if (answer !== undefined) return answer
          if (signal?.aborted) throw new PasswordClientError('wait_aborted', 'the caller went away')
          if (waitMs === 0) return undefined
          asked = await source.ask()
          const late = asked.sealed === undefined ? undefined : verdicts.open(job, asked.sealed)
          if (late !== undefined) received('asked')
          return late
        } finally {
          waiters.release(job.id)
        }
      },
    }
  }

  return {
    submitted,
    redeeming,
    announced(reply) {
      offer(submitted, reply, 'message')
      offer(redeeming, reply, 'message')
    },
    found(reply) {
      offer(submitted, reply, 'asked')
      offer(redeeming, reply, 'asked')
    },
    failed(jobId) {
      for (const waiters of [submitted, redeeming]) waiters.settle(jobId, { kind: 'refused', code: 'unavailable' })
    },
    stored: (reply) => offer(redeeming, reply, 'message'),
    pendingSubmitted: (waiter, source) => pending(submitted, waiter, source),
    pendingRedeemed: (waiter, source) => pending(redeeming, waiter, source),
  }
}
