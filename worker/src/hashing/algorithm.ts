/** A password hashing algorithm as a worker uses it. */
import type { ExactHash } from '@spillway/client/protocol/setting'
import type { AlgorithmName } from './algorithm-name.js'

/** Verifies the hashes of one family of algorithms. All of its work is off the event loop. */
export interface Verifier {
  /** As operators know it: argon2, bcrypt. */
  readonly family: string
  /** The implementation in use, by its package. */
  readonly engine: string
  /** Whether the stored hash is of this algorithm, well-formed, and within the cost that a worker accepts. */
  recognizes(storedHash: string): boolean
  /** The label of a stored hash that is recognized. */
  algorithm(storedHash: string): AlgorithmName
  /** The signal cancels a call that has not begun: the promise then rejects with its reason. */
  verify(password: string, storedHash: string, signal?: AbortSignal): Promise<boolean>
}

/** An algorithm that also makes hashes, at any cost. */
export interface Algorithm<Cost, Setting extends Cost> extends Verifier {
  /** Expects a cost that is affordable. */
  hash(password: string, cost: Cost, signal?: AbortSignal): Promise<string>
  /** Whether a worker makes hashes of this cost. */
  isAffordable(cost: Cost): boolean
  /** A hash with the setting that the request holds. Undefined when that costs too much, or no implementation here takes it. */
  hashExactly(exact: ExactHash, setting: Setting, signal?: AbortSignal): Promise<string> | undefined
  /** A well-formed hash with a random digest: verifying against it takes as long as any, and no password is known to match. */
  decoyHash(cost: Cost): string
}
