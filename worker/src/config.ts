/** A worker's configuration: every setting with its default, bounds and meaning. */

import {
  boolean,
  choice,
  commonSettings,
  httpUrl,
  integer,
  isLoopback,
  optionalInteger,
  ports,
  text,
} from '@spillway/common/settings'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { queueSettings } from '@spillway/queue/settings'
import { refuseGuessableKeys } from '@spillway/queue/wire/seal'
import { envSchema } from 'env-schema'
import type { FromSchema } from 'json-schema-to-ts'
import { firebaseSettings, oldSystemSettings } from './hashing/formats/settings.js'
import { policySettings } from './hashing/policy.js'

export const WorkerConfig = {
  type: 'object',
  properties: {
    ...queueSettings,
    ...commonSettings,
    ...policySettings,
    ...firebaseSettings,
    ...oldSystemSettings,
    LEGACY_VERIFY_URL: text(
      '',
      'Where the old system is asked about accounts that are not here yet or were imported without a hash; `https://`, or `http://` on the loopback interface; gateways need `LEGACY_VERIFY=true`',
      httpUrl,
    ),
    LEGACY_VERIFY_KEY: text('', 'The secret key that signs these questions, at least 32 bytes in base64', {
      pattern: '^([A-Za-z0-9+/]{43,}={0,2})?$',
    }),
    LEGACY_VERIFY_TIMEOUT_MS: integer(
      3_000,
      [100, 30_000],
      'How long the old system may take to answer; an answer that takes more than half of it is slow',
    ),
    LEGACY_VERIFY_CONCURRENCY: integer(
      4,
      [1, 1_000],
      'Questions to the old system at a time, for each worker; four times as many wait',
    ),
    HASH_ENGINE: choice(
      'native',
      ['native', 'packages'],
      'The hashing engine: `native` for the native engine if it is built, else npm packages; `packages` always for npm packages',
    ),
    OPS_HOST: text('127.0.0.1', 'Interface of the ops port'),
    OPS_PORT: integer(9465, ports, 'Port of `/metrics`, `/healthz` and `/readyz`'),
    SHUTDOWN_GRACE_MS: integer(10_000, [0], 'How long a stopping worker finishes its jobs before it requeues the rest'),
    STUCK_AFTER_MS: integer(
      15_000,
      [1_000],
      'How long without progress, while progress is possible, until `/healthz` fails',
    ),
    WORKER_CONCURRENCY: optionalInteger(
      [1, 1_024],
      "Hashing threads; by default the pod's CPU limit, else the control group's, else all processors",
    ),
    CPU_LIMIT_MILLICORES: optionalInteger([1], 'The CPU limit of the pod, which the chart passes on'),
    SPILLWAY_TEST_HASHES: boolean(
      false,
      'Whether test doubles of hashes are accepted, for load tests; refused with `NODE_ENV=production`',
    ),
    SPILLWAY_FALLBACK: boolean(false, 'Set by a gateway for its fallback worker (`LOCAL_FALLBACK_CONCURRENCY`)'),
    NODE_ENV: text('development', '`production` refuses test doubles'),
  },
  required: ['SPILLWAY_SEAL_KEYS'],
  additionalProperties: false,
} as const
export type WorkerConfig = FromSchema<typeof WorkerConfig>

/** The names of all variables that a worker reads. */
export const WORKER_VARIABLES: readonly string[] = Object.keys(WorkerConfig.properties)

/** Reads the environment once. Throws one error that names all invalid variables. */
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
  attempt(() => env.REDIS_URL !== undefined && parseRedisServers(env.REDIS_URL))
  if (env.SPILLWAY_TEST_HASHES === 'true' && env.NODE_ENV === 'production')
    problems.push('SPILLWAY_TEST_HASHES is for load tests and must not be set with NODE_ENV=production')
  if (config !== undefined && config.LEGACY_VERIFY_URL !== '' && !isPrivateUrl(config.LEGACY_VERIFY_URL))
    problems.push(
      'LEGACY_VERIFY_URL must be an https URL, or http to localhost, 127.0.0.1 or [::1], without a user or password: passwords are sent to it',
    )
  if (config !== undefined && config.LEGACY_VERIFY_URL !== '' && config.LEGACY_VERIFY_KEY === '')
    problems.push('LEGACY_VERIFY_URL needs LEGACY_VERIFY_KEY: make one by "openssl rand -base64 32"')
  if (config === undefined || problems.length > 0) throw new Error(problems.join('; '))
  return config
}

/** Whether nobody between here and there reads what is sent. */
function isPrivateUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  return username === '' && password === '' && (protocol === 'https:' || isLoopback(hostname))
}
