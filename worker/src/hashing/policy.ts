/** The policy of a worker: algorithm and cost of new hashes for requests without a policy. */
import type { Settings } from '@spillway/common/read-settings'
import { choice, integer } from '@spillway/common/settings'
import type { Argon2Cost, HashPolicy } from '@spillway/queue/wire/policy'
import { type RehashMode, rehashModes } from '@spillway/queue/wire/stored-hash'
import type { FromSchema } from 'json-schema-to-ts'

/** The variables that set the policy, as a part of the configuration's JSON Schema. */
export const policySettings = {
  HASH_ALGORITHM: choice(
    'argon2id',
    ['argon2id', 'bcrypt'],
    'Algorithm of new hashes; bcrypt reads only 72 bytes, so with bcrypt longer new passwords are refused, and longer passwords of existing accounts are hashed with argon2id',
  ),
  ARGON2_MEMORY_KIB: integer(
    19_456,
    [8, 1_048_576],
    "Memory of a new argon2id hash; OWASP's minimum is 19 MiB with 2 passes and 1 lane",
  ),
  ARGON2_TIME: integer(2, [1, 64], 'Passes of a new argon2id hash'),
  ARGON2_PARALLELISM: integer(1, [1, 16], 'Lanes of a new argon2id hash'),
  BCRYPT_COST: integer(12, [4, 17], "Logarithm of the rounds of a new bcrypt hash; OWASP's minimum is 10"),
  REHASH: choice(
    'weaker',
    rehashModes,
    'Which matching hashes are replaced for requests of the service API with `rehash: true` and no policy: `weaker` replaces hashes below the policy, `always` hashes with another algorithm or cost, `never` no hash; gateways have a setting with the same name for logins',
  ),
} as const
type PolicySettings = Settings<
  FromSchema<{ type: 'object'; properties: typeof policySettings; additionalProperties: false }>
>

export interface Policy {
  /** The policy of new hashes, in the form of requests. */
  hashes: HashPolicy
  rehash: RehashMode
  /** The policy of a new hash for a right password that bcrypt would truncate. */
  longPasswords: Extract<HashPolicy, { algorithm: 'argon2id' }>
}

export function policyOf(settings: PolicySettings): Policy {
  const { hashAlgorithm, rehash, bcryptCost: cost } = settings
  const { argon2MemoryKib: memoryKib, argon2Time: time, argon2Parallelism: parallelism } = settings
  const argon2id = { algorithm: 'argon2id', memoryKib, time, parallelism } as const
  return asPolicy(hashAlgorithm === 'bcrypt' ? { algorithm: 'bcrypt', cost } : argon2id, rehash, argon2id)
}

export function argon2idPolicy(cost: Argon2Cost): Policy {
  return asPolicy({ algorithm: 'argon2id', ...cost })
}

/** OWASP's minimum, for which every worker has the memory. */
export const LEAST_ARGON2ID = { algorithm: 'argon2id', memoryKib: 19_456, time: 2, parallelism: 1 } as const

export function asPolicy(
  hashes: HashPolicy,
  rehash: RehashMode = 'weaker',
  longPasswords: Policy['longPasswords'] = LEAST_ARGON2ID,
): Policy {
  return { hashes, rehash, longPasswords }
}
