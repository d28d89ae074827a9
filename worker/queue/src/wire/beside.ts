/** Messages between an application and the hashing process beside it, over the IPC channel of fork(). Both are of the same version. */
import type { JobName, Requests, Verdict } from './job.js'
import type { HashPolicy } from './policy.js'
import type { UnitCosts } from './work.js'

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

/** Takes a request back whose answer nobody waits for. What has begun is answered all the same. */
export interface BesideCancellation {
  readonly id: number
  readonly cancelled: true
}

/** Asks for `alive`. */
export interface BesidePing {
  readonly ping: true
}

/** What the process can do under load, as workers publish it. */
export interface BesideCapacity {
  /** Hashing threads. */
  slots: number
  /** How many requests the process takes at a time. */
  inHand: number
  /** The time of a slot for each request in the next seconds, and in the time after them, in milliseconds. */
  serviceMs: number
  lineMs: number
  /** The time from taking a request to its verdict, in milliseconds. */
  latencyMs: number
  unitCosts: UnitCosts
}

export type BesideMessage =
  /** When requests can be taken. Without an engine, which is a sentence, that is looked for yet, and it is said once more. */
  | { kind: 'ready'; capacity: BesideCapacity; engine: string | undefined }
  /** The process cannot hash, and ends. */
  | { kind: 'unfit'; code: 'not_installed' | 'unsupported_policy'; reason: string }
  | { kind: 'alive' }
  | { kind: 'performed'; id: number; verdict: Verdict; capacity: BesideCapacity }
