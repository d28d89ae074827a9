/** What hashes for an application: the workers of a queue, or a process beside it. */
import type { Load, Place } from '@spillway/queue/order'
import type { JobName, Requests, Result } from '@spillway/queue/wire/job'
import type { ApplicationTicket } from './tickets.js'

export interface PerformOptions {
  waitMs: number
  signal: AbortSignal | undefined
}

export interface FollowOptions {
  /** Gives a place to a job that has to be added. Throws `busy`. */
  place(): Exclude<Place, 'refused'>
  holdMs: number
  /** Fires when the client has left. */
  signal: AbortSignal
}

/** What became of a ticket while its client was held. */
export interface Followed {
  result: Result | undefined
  /** The attempt of the next ticket. */
  attempt: number
  number: number | undefined
  /** How many requests are before it, and milliseconds until its result. */
  position: number
  etaMs: number
}

export interface Backend {
  readonly by: 'workers' | 'process'
  load(): Load
  /** Epoch milliseconds by the clock of deadlines. */
  now(): number
  /** Resolves once the load is known, or after this time. Rejects when nothing can hash here. */
  whenKnown(waitMs: number): Promise<void>
  /**
   * Undefined when the time ran out or the signal fired first; work that has not begun is then
   * cancelled.
   */
  perform<Name extends JobName>(
    name: Name,
    request: Requests[Name],
    options: PerformOptions,
  ): Promise<Result | undefined>
  /** Waits for the result of a ticket, and starts its request again if no job of it is left. */
  follow(ticket: ApplicationTicket, options: FollowOptions): Promise<Followed>
  close(): Promise<void>
}
