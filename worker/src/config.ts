/** A worker's configuration: every setting with its default, bounds and meaning. */

import { readSettings, type Settings } from '@spillway/common/read-settings'
import { choice, commonSettings, integer, optionalInteger, ports, text } from '@spillway/common/settings'
import { parseRedisUrl } from '@spillway/queue/redis/url'
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
    HASH_ENGINE: choice(
      'native',
      ['native', 'packages'],
      'Hashing engine: `native` uses the native engine if it is built, otherwise npm packages; `packages` always uses npm packages',
    ),
    OPS_HOST: text('127.0.0.1', 'Interface of the ops port'),
    OPS_PORT: integer(9465, ports, 'Port of `/metrics`, `/healthz` and `/readyz`'),
    SHUTDOWN_GRACE_MS: integer(10_000, [0], 'How long a stopping worker may finish jobs before it requeues the rest'),
    STUCK_AFTER_MS: integer(
      15_000,
      [1_000],
      '`/healthz` fails after this time without progress, while progress is possible',
    ),
    WORKER_CONCURRENCY: optionalInteger(
      [1, 1_024],
      "Number of hashing threads; by default the pod's CPU limit, otherwise the control group's, otherwise all processors",
    ),
    CPU_LIMIT_MILLICORES: optionalInteger([1], 'CPU limit of the pod, which the Helm chart sets'),
  },
  required: ['SPILLWAY_SEAL_KEYS'],
  additionalProperties: false,
} as const
export type WorkerConfig = Settings<WorkerVariables>
type WorkerVariables = FromSchema<typeof WorkerConfig>

/** Reads the environment once. Throws one error that names all invalid variables. */
export function readWorkerConfig(env: NodeJS.ProcessEnv): WorkerConfig {
  return readSettings<WorkerVariables>(WorkerConfig, env, contradictionsIn)
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
  const { SPILLWAY_SEAL_KEYS: sealKeys, REDIS_URL: redisUrl } = texts
  check(() => sealKeys && refuseGuessableKeys('SPILLWAY_SEAL_KEYS', sealKeys))
  check(() => redisUrl && parseRedisUrl(redisUrl))
  return problems
}
