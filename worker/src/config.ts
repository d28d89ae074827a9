/** A worker's configuration: every name, its default, and its bounds. */
import { envSchema } from 'env-schema'
import Type, { type Static } from 'typebox'
import { DEFAULT_QUEUE_PREFIX } from './protocol/job.js'
import { parseKeyring } from './protocol/seal.js'
import { parseRedisUrl } from './redis.js'

const WorkerConfig = Type.Object({
  /** redis://, redis+sentinel:// or redis+cluster://, with rediss for TLS. */
  REDIS_URL: Type.String({ default: 'redis://127.0.0.1:6379' }),
  /** Must be the same at gateways and workers, and in the autoscaler's key. */
  QUEUE_PREFIX: Type.String({ default: DEFAULT_QUEUE_PREFIX, pattern: '^\\{[\\w-]+\\}$' }),
  /** kid:base64 of 32 bytes, comma-separated; the first seals, all open. */
  SPILLWAY_SEAL_KEYS: Type.String(),
  /** Today's policy: RFC 9106 and OWASP's Password Storage Cheat Sheet give 19 MiB, 2 passes, 1 lane as a minimum. */
  ARGON2_MEMORY_KIB: Type.Integer({ default: 19_456, minimum: 8, maximum: 1_048_576 }),
  ARGON2_TIME: Type.Integer({ default: 2, minimum: 1, maximum: 64 }),
  ARGON2_PARALLELISM: Type.Integer({ default: 1, minimum: 1, maximum: 16 }),
  /** Where /metrics, /healthz and /readyz are served. */
  OPS_HOST: Type.String({ default: '127.0.0.1' }),
  OPS_PORT: Type.Integer({ default: 9465, minimum: 0, maximum: 65_535 }),
  /** How long a stopping worker finishes what it has before it hands the rest back, in milliseconds. */
  SHUTDOWN_GRACE_MS: Type.Integer({ default: 10_000, minimum: 0 }),
  /** After how long without progress that could have been made /healthz fails, in milliseconds. */
  STUCK_AFTER_MS: Type.Integer({ default: 15_000, minimum: 1_000 }),
  /** Where traces are sent by OTLP over HTTP; empty for nowhere. The SDK reads the other OTEL_ variables itself. */
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.String({ default: '', pattern: '^(https?://.+)?$' }),
  LOG_LEVEL: Type.String({ default: 'info', pattern: '^(fatal|error|warn|info|debug|trace|silent)$' }),
  /** Jobs at a time, and where that is not given, the limit of the pod: read before this, see cpu-limit.ts. */
  WORKER_CONCURRENCY: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_024 })),
  CPU_LIMIT_MILLICORES: Type.Optional(Type.Integer({ minimum: 1 })),
  /** Accept hashes that hash nothing, for load tests. Refused with NODE_ENV=production. */
  SPILLWAY_TEST_HASHES: Type.Boolean({ default: false }),
  /** Set by a gateway for the worker it starts when there is no other (LOCAL_FALLBACK_CONCURRENCY). */
  SPILLWAY_FALLBACK: Type.Boolean({ default: false }),
  NODE_ENV: Type.String({ default: 'development' }),
})
export type WorkerConfig = Static<typeof WorkerConfig>

/** Reads the environment once. Throws one error that names everything wrong in it, and none of the values. */
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
  attempt(() => env.SPILLWAY_SEAL_KEYS !== undefined && parseKeyring(env.SPILLWAY_SEAL_KEYS))
  attempt(() => env.REDIS_URL !== undefined && parseRedisUrl(env.REDIS_URL))
  if (env.SPILLWAY_TEST_HASHES === 'true' && env.NODE_ENV === 'production')
    problems.push('SPILLWAY_TEST_HASHES is for load tests and must not be set with NODE_ENV=production')
  if (config === undefined || problems.length > 0) throw new Error(problems.join('; '))
  return config
}
