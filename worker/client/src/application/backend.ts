/** What hashes for an application: the workers of a queue, or a process beside it. */
import type { Load } from '@spillway/queue/wire/capacity'
import type { JobName, Requests, Verdict } from '@spillway/queue/wire/job'
import type { JobRef } from '@spillway/queue/wire/reply'
import type { Tally } from '@spillway/queue/wire/work'

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
  /**
   * Undefined when the time ran out or the signal fired first; work that has not begun is then
   * cancelled. A worker that dropped it as too late answers `expired`.
   */
  perform<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    options: PerformOptions,
  ): Promise<Verdict | undefined>
  /** Begins work for a ticket, which lives for so long. */
  begin(request: Requests['verify'], lifeMs: number): Promise<JobRef>
  /** Waits for work that was begun, also elsewhere. The signal says that its client has left. */
  follow(job: JobRef, options: PerformOptions): Promise<Followed>
  /** Forgets the answer of a ticket: true for one caller alone. What a queue has, others mark. */
  take(job: JobRef): boolean
  close(): Promise<void>
}

/** In milliseconds: hashes that take less say little of those that take more. */
const SAYS_LITTLE_MS = 1

/**
 * The load as an application sees it: it knows the cost of its own calls, before a hash of that
 * cost was ever made.
 * @param own the calls that wait or are hashed; all others take as long as recent hashes
 */
export function withOwnWork(load: Load, own: Tally): Load {
  const { unitCosts, waiting, deferred, active } = load
  if (unitCosts === undefined || load.serviceMs === 0 || own.count === 0) return load
  const others = Math.max(0, waiting + deferred + active - own.count)
  const takenOfForetold = (load.serviceMs + SAYS_LITTLE_MS) / (unitCosts.foretoldMs + SAYS_LITTLE_MS)
  const ownMs = takenOfForetold * own.meanMs(unitCosts)
  const serviceMs = (own.count * ownMs + others * load.serviceMs) / (own.count + others)
  const dearer = serviceMs / load.serviceMs
  return {
    ...load,
    serviceMs,
    jobsPerSecond: load.jobsPerSecond / dearer,
    linePerSecond: load.linePerSecond / dearer,
  }
}
