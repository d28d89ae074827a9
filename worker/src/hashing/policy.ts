/**
 * The policy: the algorithm and cost of new hashes, their settings, and the other formats that are verified. Only this file, the
 * algorithm's own file and algorithm-name.ts contain the name and costs of an algorithm.
 */
import type { Algorithm, Verifier } from './algorithm.js'
import type { AlgorithmName } from './algorithm-name.js'
import type { Argon2Cost } from './argon2.js'
import type { NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The variables that set the policy, as a part of the configuration's JSON Schema. */
export const policySettings = {
  /** OWASP's Password Storage Cheat Sheet gives 19 MiB, 2 passes, 1 lane as a minimum. */
  ARGON2_MEMORY_KIB: { type: 'integer', default: 19_456, minimum: 8, maximum: 1_048_576 },
  ARGON2_TIME: { type: 'integer', default: 2, minimum: 1, maximum: 64 },
  ARGON2_PARALLELISM: { type: 'integer', default: 1, minimum: 1, maximum: 16 },
} as const

export interface Policy {
  /** The algorithm of new hashes. */
  algorithm: AlgorithmName
  /** The cost of new hashes, as metrics labels. */
  cost: Readonly<Record<string, number>>
  /** Loads and tests the implementations; throws when an algorithm has none that works on this machine. */
  load(threads: Threads, native: NativeEngine | undefined): Promise<{ current: Algorithm; others: Verifier[] }>
}

export function policyOf(settings: Readonly<Record<keyof typeof policySettings, number>>): Policy {
  return argon2idPolicy({
    memoryKib: settings.ARGON2_MEMORY_KIB,
    time: settings.ARGON2_TIME,
    parallelism: settings.ARGON2_PARALLELISM,
  })
}

export function argon2idPolicy(cost: Argon2Cost): Policy {
  return {
    algorithm: 'argon2id',
    cost: { memory_kib: cost.memoryKib, time: cost.time, parallelism: cost.parallelism },
    // Imported on demand: gateways read the settings for their fallback and must not load hashing code.
    async load(threads, native) {
      const [{ createArgon2 }, { createBcrypt }] = await Promise.all([import('./argon2.js'), import('./bcrypt.js')])
      const [current, bcrypt] = await Promise.all([createArgon2(cost, threads, native), createBcrypt(threads, native)])
      return { current, others: [bcrypt] }
    },
  }
}
