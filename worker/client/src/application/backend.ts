/** What hashes for an application: the workers of a queue, or a process beside it. */
import type { Load } from '../protocol/capacity.js'
import type { JobName, Requests, Verdict } from '../protocol/job.js'
import type { JobRef } from '../protocol/reply.js'

export interface PerformOptions {
  waitMs: number
  signal: AbortSignal | undefined
}

/** Work that has a ticket. */
export interface Followed {
  /** Undefined while there is no answer. */
  verdict: Verdict | undefined
  /** Neither the work nor its verdict is here: there will be no answer. */
  isLost: boolean
  /** What is ahead of it, if that is known, and how long it has to wait, in milliseconds. */
  ahead: number | undefined
  waitMs: number
}

export interface Backend {
  readonly by: 'workers' | 'process'
  load(): Load
  predictedWaitMs(): number
  /** Resolves once the load is known, or after this time. Rejects when nothing can hash here. */
  whenKnown(waitMs: number): Promise<void>
  /** Undefined when the time ran out or the signal fired first; the work is then cancelled if it has not begun. */
  perform<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    options: PerformOptions,
  ): Promise<Verdict | undefined>
  /** Begins work for a ticket, which lives for so long. */
  begin(request: Requests['verify'], lifeMs: number): Promise<JobRef>
  /** Waits for work that was begun, also elsewhere. The signal says that its client has left. */
  follow(job: JobRef, options: PerformOptions): Promise<Followed>
  /** Takes the answer of a ticket: true for one caller alone. */
  take(job: JobRef): Promise<boolean>
  close(): Promise<void>
}
