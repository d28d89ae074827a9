/**
 * Answers of jobs, for the requests of this process that wait. A verdict arrives as a message or is
 * found in Redis. One that does not open for its job is treated as missing.
 */
import type { Logger } from '@spillway/common/throttled-warning'
import { within, withResolvers } from '@spillway/common/within'
import { PasswordClientError } from '../errors.js'
import { isVerdict, type JobData, type Verdict } from '../wire/job.js'
import { type JobRef, verdictSeal } from '../wire/reply.js'
import { type Keyring, SealError } from '../wire/seal.js'

/** How a verdict arrived: announced by the worker, or found by asking Redis. */
export type VerdictSource = 'message' | 'asked'

/** What a waiting job has to expect, by the capacity of the moment. */
export interface Expectation {
  /** Jobs that are ahead; undefined where Redis did not say. */
  ahead: number | undefined
  /** Milliseconds until the answer; Infinity when no worker is alive. */
  waitMs: number
  /** The number of its ticket; undefined for a job that was never deferred: its turn has come. */
  number: number | undefined
}

export interface PendingJob {
  readonly job: JobRef
  /**
   * The answer, or undefined when `waitMs` ran out first; the job continues either way. Call it
   * once for each PendingJob. Throws `wait_aborted` when the signal fires.
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

export interface Asked {
  expectation: Expectation
  sealed: string | undefined
}

interface Source {
  /** What was asked when its wait began, for an answer that does not wait. */
  asked?: Asked
  /** Asks Redis again, which finds a verdict whose message was lost. Never rejects. */
  ask(): Promise<Asked>
  /** What is known without asking; undefined when that is too long ago. */
  known?(): Expectation | undefined
}

interface AnswersOptions {
  keyring: Keyring
  log: Logger
  /** Called for each verdict that a waiting request gets, and for each that did not open. */
  received?: ((source: VerdictSource) => void) | undefined
  broken?: (() => void) | undefined
}

export class Answers {
  /** Requests that wait for jobs that were added here, and for a job by its ticket. */
  readonly submitted = new Waiters()
  readonly redeeming = new Waiters()
  readonly #options: AnswersOptions

  constructor(options: AnswersOptions) {
    this.#options = options
  }

  /** A verdict was announced, or found in Redis although it had not been announced. */
  offer(reply: { jobId: string; sealed: string }, source: VerdictSource): void {
    for (const waiters of [this.submitted, this.redeeming]) this.#offerTo(waiters, reply, source)
  }

  /** A verdict was stored before its ticket was redeemed. */
  stored(reply: { jobId: string; sealed: string }): void {
    this.#offerTo(this.redeeming, reply, 'message')
  }

  /** A job has failed: there will be no verdict. */
  failed(jobId: string): void {
    for (const waiters of [this.submitted, this.redeeming])
      waiters.settle(jobId, { kind: 'refused', code: 'unavailable' })
  }

  /** A job that a request waits for, which holds its waiter until it is answered. */
  pending(waiters: Waiters, { job, answer: answered }: Waiter, source: Source): PendingJob {
    let { asked } = source
    return {
      job,
      expectation: async () => {
        const known = source.known?.()
        if (known !== undefined) return known
        const { expectation } = asked ?? (await source.ask())
        asked = undefined
        return expectation
      },
      answer: async ({ waitMs, signal }) => {
        if (waitMs > 0) asked = undefined
        try {
          const answer = await within(waitMs, answered, signal)
          if (answer !== undefined) return answer
          if (signal?.aborted) throw new PasswordClientError('wait_aborted', 'the caller went away')
          if (waitMs === 0) return undefined
          asked = await source.ask()
          const late = asked.sealed === undefined ? undefined : this.#open(job, asked.sealed)
          if (late !== undefined) this.#options.received?.('asked')
          return late
        } finally {
          waiters.release(job.id)
        }
      },
    }
  }

  /** A value that is not a worker's verdict: counts and logs it. */
  broken(job: JobRef): undefined {
    this.#options.broken?.()
    this.#options.log.error({ jobId: job.id }, 'a verdict did not open: forged, swapped or damaged')
  }

  /** Settles the waiter of a job, if there is one and the value opens. */
  #offerTo(waiters: Waiters, { jobId, sealed }: { jobId: string; sealed: string }, source: VerdictSource): void {
    const waiter = waiters.get(jobId)
    const answer = waiter && this.#open(waiter.job, sealed)
    if (answer === undefined) return
    this.#options.received?.(source)
    waiters.settle(jobId, answer)
  }

  #open(job: JobRef, sealed: string): Verdict | undefined {
    try {
      const verdict = this.#options.keyring.open(verdictSeal(job), sealed)
      return isVerdict(verdict) ? verdict : this.broken(job)
    } catch (error) {
      if (error instanceof SealError) return this.broken(job)
      throw error
    }
  }
}

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
