/** What hashes for an application: the workers of a queue, or a process beside it. */
import type { Load } from '../protocol/capacity.js'
import type { JobName, Requests, Verdict } from '../protocol/job.js'

export interface PerformOptions {
  waitMs: number
  signal: AbortSignal | undefined
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
  close(): Promise<void>
}
