/** What an application and the hashing process beside it say to each other, over the channel of the fork. Both are of one version. */
import type { JobName, Requests, Verdict } from './job.js'
import type { HashPolicy } from './policy.js'

/** The only argument of the process, as JSON. */
export interface BesideSettings {
  policy: HashPolicy
  /** Hashes at a time [the processors that the process may use]. */
  concurrency?: number | undefined
}

export interface BesideRequest {
  readonly id: number
  readonly request: Requests[JobName]
}

export type BesideMessage =
  /** Once, when requests can be taken: how many at a time, and how long each takes when there are so many, in milliseconds. */
  | { kind: 'ready'; slots: number; serviceMs: number }
  /** The process cannot hash, and ends. */
  | { kind: 'unfit'; reason: string }
  | { kind: 'performed'; id: number; verdict: Verdict; serviceMs: number }
