/** The waiters of this process, by job. */

import { withResolvers } from '@spillway/common/within'
import type { JobData, Verdict } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'

/** A job that requests of this process wait for. */
export interface Waiter {
  readonly job: JobRef
  /** Resolves when the job is answered; never rejects. */
  readonly answer: Promise<Verdict>
  /** The data with which a lost job is added again. Undefined until this process has added the job, and after `withdraw`. */
  readonly data: JobData | undefined
}

interface Entry extends Waiter {
  data: JobData | undefined
  holders: number
  settle(verdict: Verdict): void
}

export interface Waiters {
  /** Begins to wait for a job; several requests may wait for the same one. Each call is paired with {@link Waiters.release}. */
  hold(job: JobRef): Waiter
  /** Redis accepted a job from this process. */
  added(jobId: string, data: JobData): void
  /** Marks a job as cancelled: it is not added again when Redis no longer has it. It may still be answered. */
  withdraw(jobId: string): void
  release(jobId: string): void
  /** The number of requests that wait for a job. */
  holders(jobId: string): number
  get(jobId: string): Waiter | undefined
  settle(jobId: string, verdict: Verdict): void
  jobIds(): string[]
}

export function createWaiters(): Waiters {
  const entries = new Map<string, Entry>()
  return {
    hold(job) {
      const known = entries.get(job.id)
      if (known !== undefined) {
        known.holders += 1
        return known
      }
      const { promise, resolve } = withResolvers<Verdict>()
      const entry: Entry = { job, data: undefined, answer: promise, holders: 1, settle: resolve }
      entries.set(job.id, entry)
      return entry
    },
    added(jobId, data) {
      const entry = entries.get(jobId)
      if (entry !== undefined) entry.data = data
    },
    withdraw(jobId) {
      const entry = entries.get(jobId)
      if (entry !== undefined) entry.data = undefined
    },
    release(jobId) {
      const entry = entries.get(jobId)
      if (entry === undefined) return
      entry.holders -= 1
      if (entry.holders === 0) entries.delete(jobId)
    },
    holders: (jobId) => entries.get(jobId)?.holders ?? 0,
    get: (jobId) => entries.get(jobId),
    settle: (jobId, verdict) => entries.get(jobId)?.settle(verdict),
    jobIds: () => [...entries.keys()],
  }
}
