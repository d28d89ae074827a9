/**
 * The policy of a worker: the algorithm and cost of new hashes for requests that bring no policy of their own, with its settings. Only
 * this file, index.ts, the algorithm's own file and algorithm-name.ts contain the name and costs of an algorithm.
 */
import type { Argon2Cost, HashPolicy } from '@spillway/client/protocol/policy'
import type { Argon2Setting, BcryptSetting } from '@spillway/client/protocol/setting'
import { type RehashMode, rehashModes } from '@spillway/client/protocol/stored-hash'
import type { FromSchema } from 'json-schema-to-ts'
import type { Algorithm } from './algorithm.js'
import type { AlgorithmName } from './algorithm-name.js'
import type { Argon2Options } from './argon2.js'
import type { BcryptCost } from './bcrypt.js'
import type { Threads } from './threads.js'

/** The variables that set the policy, as a part of the configuration's JSON Schema. */
export const policySettings = {
  /** Of new hashes. bcrypt reads 72 bytes: longer new passwords are then refused. */
  HASH_ALGORITHM: { type: 'string', default: 'argon2id', enum: ['argon2id', 'bcrypt'] },
  /** OWASP's Password Storage Cheat Sheet gives 19 MiB, 2 passes, 1 lane as a minimum. */
  ARGON2_MEMORY_KIB: { type: 'integer', default: 19_456, minimum: 8, maximum: 1_048_576 },
  ARGON2_TIME: { type: 'integer', default: 2, minimum: 1, maximum: 64 },
  ARGON2_PARALLELISM: { type: 'integer', default: 1, minimum: 1, maximum: 16 },
  /** The logarithm of its rounds. OWASP's minimum is 10. */
  BCRYPT_COST: { type: 'integer', default: 12, minimum: 4, maximum: 17 },
  /**
   * Which matches are hashed anew for requests that neither say so nor bring a policy: `always` those of another algorithm or cost,
   * stronger ones as well, `weaker` those below the policy. Gateways say it for their logins, by a setting of the same name.
   */
  REHASH: { type: 'string', default: 'weaker', enum: rehashModes },
} as const
type PolicySettings = FromSchema<{ type: 'object'; properties: typeof policySettings; additionalProperties: false }>

export interface Policy {
  /** As requests bring it. */
  hashes: HashPolicy
  /** Which matches are hashed anew. */
  rehash: RehashMode
  /** The algorithm of new hashes. */
  algorithm: AlgorithmName
  /** The cost of new hashes, as metrics labels. */
  cost: Readonly<Record<string, number>>
}

export function policyOf(settings: PolicySettings): Policy {
  const { HASH_ALGORITHM, REHASH, BCRYPT_COST: cost } = settings
  if (HASH_ALGORITHM === 'bcrypt') return asPolicy({ algorithm: 'bcrypt', cost }, REHASH)
  const { ARGON2_MEMORY_KIB: memoryKib, ARGON2_TIME: time, ARGON2_PARALLELISM: parallelism } = settings
  return asPolicy({ algorithm: 'argon2id', memoryKib, time, parallelism }, REHASH)
}

export function argon2idPolicy(cost: Argon2Cost): Policy {
  return asPolicy({ algorithm: 'argon2id', ...cost })
}

export function asPolicy(hashes: HashPolicy, rehash: RehashMode = 'weaker'): Policy {
  const { algorithm } = hashes
  if (hashes.algorithm === 'bcrypt') return { hashes, rehash, algorithm, cost: { cost: hashes.cost } }
  const { memoryKib, time, parallelism } = hashes
  return { hashes, rehash, algorithm, cost: { memory_kib: memoryKib, time, parallelism } }
}

export interface Algorithms {
  argon2: Algorithm<Argon2Cost, Argon2Setting>
  bcrypt: Algorithm<BcryptCost, BcryptSetting>
}

/**
 * Loads and tests the implementations; throws when an algorithm has none that works on this machine. They are imported on demand:
 * gateways read the settings for their fallback and must not load hashing code.
 */
export async function loadAlgorithms(threads: Threads, options: Argon2Options): Promise<Algorithms> {
  const [{ createArgon2 }, { createBcrypt }] = await Promise.all([import('./argon2.js'), import('./bcrypt.js')])
  const [argon2, bcrypt] = await Promise.all([createArgon2(threads, options), createBcrypt(threads, options.native)])
  return { argon2, bcrypt }
}
