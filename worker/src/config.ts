/** A worker's configuration: every name, its default, and its bounds. */

import { DEFAULT_QUEUE_PREFIX } from '@spillway/client/protocol/job'
import { refuseGuessableKeys } from '@spillway/client/protocol/key-list'
import { parseShards } from '@spillway/client/redis/shards'
import { envSchema } from 'env-schema'
import type { FromSchema } from 'json-schema-to-ts'
import { firebaseSettings } from './hashing/formats/firebase-project.js'
import { policySettings } from './hashing/policy.js'

const WorkerConfig = {
  type: 'object',
  properties: {
    /** redis://, redis+sentinel:// or redis+cluster://, with rediss for TLS; several separated by white space, see redis/shards.ts. */
    REDIS_URL: { type: 'string', default: 'redis://127.0.0.1:6379' },
    /** Must be the same at gateways and workers, and in the autoscaler's key. */
    QUEUE_PREFIX: { type: 'string', default: DEFAULT_QUEUE_PREFIX, pattern: '^\\{[\\w-]+\\}$' },
    /** kid:base64 of 32 bytes, comma-separated; the first seals, all open. */
    SPILLWAY_SEAL_KEYS: { type: 'string' },
    /** The cost of new hashes: see hashing/policy.ts. */
    ...policySettings,
    /** The project whose accounts were imported from Firebase: see hashing/formats/firebase-project.ts. The key is a secret. */
    ...firebaseSettings,
    /** The hashing engine: `native` is worker/engine if it has been built, else npm packages; `packages` always the npm packages. */
    HASH_ENGINE: { type: 'string', default: 'native', enum: ['native', 'packages'] },
    /** Where /metrics, /healthz and /readyz are served. */
    OPS_HOST: { type: 'string', default: '127.0.0.1' },
    OPS_PORT: { type: 'integer', default: 9465, minimum: 0, maximum: 65_535 },
    /** How long a stopping worker finishes its jobs before it requeues the rest, in milliseconds. */
    SHUTDOWN_GRACE_MS: { type: 'integer', default: 10_000, minimum: 0 },
    /** How long no progress may be made although it is possible, in milliseconds; then /healthz fails. */
    STUCK_AFTER_MS: { type: 'integer', default: 15_000, minimum: 1_000 },
    /** The collector of traces, by OTLP over HTTP; empty for none. The SDK reads the other OTEL_ variables itself. */
    OTEL_EXPORTER_OTLP_ENDPOINT: { type: 'string', default: '', pattern: '^(https?://.+)?$' },
    LOG_LEVEL: { type: 'string', default: 'info', pattern: '^(fatal|error|warn|info|debug|trace|silent)$' },
    /** Jobs at a time; by default the pod's CPU limit. Both are read earlier, see cpu-limit.ts. */
    WORKER_CONCURRENCY: { type: 'integer', minimum: 1, maximum: 1_024 },
    CPU_LIMIT_MILLICORES: { type: 'integer', minimum: 1 },
    /** Accepts test doubles of hashes, for load tests. Refused with NODE_ENV=production. */
    SPILLWAY_TEST_HASHES: { type: 'boolean', default: false },
    /** Set by a gateway for its fallback worker (LOCAL_FALLBACK_CONCURRENCY). */
    SPILLWAY_FALLBACK: { type: 'boolean', default: false },
    NODE_ENV: { type: 'string', default: 'development' },
  },
  required: ['SPILLWAY_SEAL_KEYS'],
  additionalProperties: false,
} as const
export type WorkerConfig = FromSchema<typeof WorkerConfig>

/** The names of all variables that a worker reads. */
export const WORKER_VARIABLES: readonly string[] = Object.keys(WorkerConfig.properties)

/** Reads the environment once. Throws one error that names every invalid variable, without values. */
export function readWorkerConfig(env: NodeJS.ProcessEnv): WorkerConfig {
  const problems: string[] = []
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error))
      return undefined
    }
  }
  const config = attempt(() => envSchema<WorkerConfig>({ schema: WorkerConfig, data: env, env: false }))
  attempt(
    () => env.SPILLWAY_SEAL_KEYS !== undefined && refuseGuessableKeys('SPILLWAY_SEAL_KEYS', env.SPILLWAY_SEAL_KEYS),
  )
  attempt(() => env.REDIS_URL !== undefined && parseShards(env.REDIS_URL))
  if (env.SPILLWAY_TEST_HASHES === 'true' && env.NODE_ENV === 'production')
    problems.push('SPILLWAY_TEST_HASHES is for load tests and must not be set with NODE_ENV=production')
  if (config === undefined || problems.length > 0) throw new Error(problems.join('; '))
  return config
}
