/** The waiters of this process, by job. */
import { withResolvers } from '@spillway/common/within'
import type { JobData, Verdict } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'

/** A job that requests of this process wait for. */
export interface Waiter {
  readonly job: JobRef
  /** Resolves when the job is answered; never rejects. */
  readonly answer: Promise<Verdict>
  /** Data to add a lost job again. Undefined before it was added, and after `withdraw`. */
  readonly data: JobData | undefined
}

interface Entry extends Waiter {
  data: JobData | undefined
  holders: number
  settle(verdict: Verdict): void
}

export class Waiters {
  readonly #entries = new Map<string, Entry>()

  /** Begins to wait for a job, as others may. Paired with {@link Waiters.release}. */
  hold(job: JobRef): Waiter {
    const known = this.#entries.get(job.id)
    if (known !== undefined) {
      known.holders += 1
      return known
    }
    const { promise, resolve } = withResolvers<Verdict>()
    const entry: Entry = { job, data: undefined, answer: promise, holders: 1, settle: resolve }
    this.#entries.set(job.id, entry)
    return entry
  }

  /** Redis accepted a job from this process. */
  added(jobId: string, data: JobData): void {
    const entry = this.#entries.get(jobId)
    if (entry !== undefined) entry.data = data
  }

  /** Marks a job as cancelled: it is not added again, but may still be answered. */
  withdraw(jobId: string): void {
    const entry = this.#entries.get(jobId)
    if (entry !== undefined) entry.data = undefined
  }

  release(jobId: string): void {
    const entry = this.#entries.get(jobId)
    if (entry === undefined) return
    entry.holders -= 1
    if (entry.holders === 0) this.#entries.delete(jobId)
  }

  /** The number of requests that wait for a job. */
  holders(jobId: string): number {
    return this.#entries.get(jobId)?.holders ?? 0
  }

  get(jobId: string): Waiter | undefined {
    return this.#entries.get(jobId)
  }

  settle(jobId: string, verdict: Verdict): void {
    this.#entries.get(jobId)?.settle(verdict)
  }

  jobIds(): string[] {
    return [...this.#entries.keys()]
  }
}
