/** A password hashing algorithm of which a worker makes new hashes. */
import type { ExactHash } from '@spillway/queue/wire/setting'
import type { Method, Recipe } from './methods/recipe.js'

/** @template Cost of a policy */
export interface Algorithm<Cost, Setting extends Cost, R extends Recipe> extends Method<R> {
  /** Expects a cost that is affordable. */
  hash(password: string, cost: Cost, signal?: AbortSignal): Promise<string>
  /** Whether a worker makes hashes of this cost. */
  isAffordable(cost: Cost): boolean
  /** A hash with the setting that the request holds; undefined when that costs too much, or no implementation here takes it. */
  hashExactly(exact: ExactHash, setting: Setting, signal?: AbortSignal): Promise<string | undefined>
  /** A recipe with a random digest: verifying against it takes as long as any, and no password is known to match. */
  decoy(cost: Cost): R
}

/** The algorithms of stored hashes, as labels of metrics. */
export const algorithmNames = [
  ...(['argon2id', 'argon2i', 'argon2d', 'bcrypt'] as const),
  ...(['pbkdf2', 'scrypt', 'digest', 'sha-crypt', 'yescrypt', 'phpass', 'wrapped', 'other'] as const),
] as const
export type AlgorithmName = (typeof algorithmNames)[number]
