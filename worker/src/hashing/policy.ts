/**
 * Today's policy: the algorithm and cost of new hashes, what an operator can set of it, and the other formats that are
 * verified. The name of an algorithm and its costs stand here, in its own file and in algorithm-name.ts, and nowhere else.
 */
import type { Algorithm, Verifier } from './algorithm.js'
import type { AlgorithmName } from './algorithm-name.js'
import type { Argon2Cost } from './argon2.js'
import type { NativeEngine } from './native.js'

/** The variables of a worker that set the policy, in the language of its configuration. */
export const policySettings = {
  /** RFC 9106 and OWASP's Password Storage Cheat Sheet give 19 MiB, 2 passes, 1 lane as a minimum. */
  ARGON2_MEMORY_KIB: { type: 'integer', default: 19_456, minimum: 8, maximum: 1_048_576 },
  ARGON2_TIME: { type: 'integer', default: 2, minimum: 1, maximum: 64 },
  ARGON2_PARALLELISM: { type: 'integer', default: 1, minimum: 1, maximum: 16 },
} as const

export interface Policy {
  /** Of new hashes. */
  algorithm: AlgorithmName
  /** As labels of a metric. */
  cost: Readonly<Record<string, number>>
  /** Loads and tests the implementations; throws when an algorithm has none that works here. */
  load(native: NativeEngine | undefined): Promise<{ current: Algorithm; others: Verifier[] }>
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
    // Imported here, because a gateway reads the settings for its fallback and must load no hashing code.
    async load(native) {
      const [{ createArgon2 }, { createBcrypt }] = await Promise.all([import('./argon2.js'), import('./bcrypt.js')])
      const [current, bcrypt] = await Promise.all([createArgon2(cost, native), createBcrypt(native)])
      return { current, others: [bcrypt] }
    },
  }
}
