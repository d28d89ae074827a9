/** Messages between an application and the process beside it, both of one version. */
import type { WorkerCapacity } from './capacity.js'
import type { JobName, Requests, Result } from './job.js'
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

/** Cancels a request whose answer nobody waits for. A request that has begun is answered anyway. */
export interface BesideCancellation {
  readonly id: number
  readonly cancelled: true
}

export interface BesidePing {
  readonly ping: true
}

/** What the process can do under load, as workers publish it. */
export interface BesideCapacity extends Pick<WorkerCapacity, 'slots' | 'serviceMs' | 'lineMs' | 'latencyMs'> {
  /** How many requests the process takes at a time. */
  inHand: number
}

export type BesideMessage =
  /** Requests can be taken. Repeated once, when the engine's description is known. */
  | { kind: 'ready'; capacity: BesideCapacity; engine: string | undefined }
  /** The process cannot hash, and ends. */
  | { kind: 'unfit'; code: 'not_installed' | 'unsupported_policy'; reason: string }
  | { kind: 'alive' }
  | { kind: 'performed'; id: number; result: Result; capacity: BesideCapacity }
