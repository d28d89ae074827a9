/** A worker's configuration: every setting with its default, bounds and meaning. */

import { readSettings, variablesOf } from '@spillway/common/read-settings'
import {
  boolean,
  choice,
  commonSettings,
  httpUrl,
  integer,
  isLoopback,
  optionalInteger,
  ports,
  secret,
  text,
} from '@spillway/common/settings'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { queueSettings } from '@spillway/queue/settings'
import { refuseGuessableKeys } from '@spillway/queue/wire/seal'
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
    LEGACY_VERIFY_KEY: secret(
      text('', 'The key that signs these questions, at least 32 bytes in base64', {
        pattern: '^([A-Za-z0-9+/]{43,}={0,2})?$',
      }),
    ),
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
export const WORKER_VARIABLES: readonly string[] = variablesOf(WorkerConfig)

/** Reads the environment once. Throws one error that names all invalid variables. */
export function readWorkerConfig(env: NodeJS.ProcessEnv): WorkerConfig {
  return readSettings<WorkerConfig>(WorkerConfig, env, contradictionsIn)
}

function contradictionsIn(texts: NodeJS.ProcessEnv): string[] {
  const problems: string[] = []
  const check = (isValid: () => unknown): void => {
    try {
      isValid()
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error))
    }
  }
  const { SPILLWAY_SEAL_KEYS: sealKeys, REDIS_URL: redisUrl, LEGACY_VERIFY_URL: oldSystem } = texts
  check(() => sealKeys && refuseGuessableKeys('SPILLWAY_SEAL_KEYS', sealKeys))
  check(() => redisUrl && parseRedisServers(redisUrl))
  if (texts.SPILLWAY_TEST_HASHES === 'true' && texts.NODE_ENV === 'production')
    problems.push('SPILLWAY_TEST_HASHES is for load tests and must not be set with NODE_ENV=production')
  if (oldSystem && !isPrivateUrl(oldSystem))
    problems.push(
      'LEGACY_VERIFY_URL must be an https URL, or http to localhost, 127.0.0.1 or [::1], without a user or password: passwords are sent to it',
    )
  if (oldSystem && !texts.LEGACY_VERIFY_KEY)
    problems.push('LEGACY_VERIFY_URL needs LEGACY_VERIFY_KEY: make one by "openssl rand -base64 32"')
  return problems
}

/** Whether nobody between here and there reads what is sent. */
function isPrivateUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  return username === '' && password === '' && (protocol === 'https:' || isLoopback(hostname))
}
