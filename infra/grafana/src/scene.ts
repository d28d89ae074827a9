// A Spillway on a database and Redis keys of its own, and a client of each gateway.

import { createLogger } from '@spillway/common/log'
import { createApiClient } from '@spillway/infra/harness/api-client'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { openSpillway, withDoubles } from '@spillway/infra/harness/spillway'
import { until } from '@spillway/infra/processes/until'
import { newSealKey } from '@spillway/infra/start/secrets'
import { PasswordClient, parseKeyring } from '@spillway/queue/client'
import { newId } from '@spillway/queue/wire/id'

export const OPERATOR = { user: 'operator', password: 'operators only' }

/** The longest time for which any scene holds a request. */
const LONGEST_HOLD_MS = 120_000

/** How long jobs may wait, and their clients are present, in milliseconds. */
const JOB_LIFE_MS = 60_000

/** Low enough that a hash takes a few milliseconds. */
const CHEAP_ARGON2 = { ARGON2_MEMORY_KIB: '4096', ARGON2_TIME: '1' }

export type Scene = Awaited<ReturnType<typeof openScene>>

export type GatewayHandle = Awaited<ReturnType<Scene['gateway']>>

export async function openScene(env: NodeJS.ProcessEnv = {}) {
  const namespace = await createNamespace()
  const spillway = openSpillway({
    ...namespace,
    env: { ...CHEAP_ARGON2, ...env },
    gatewayEnv: { OPS_USER: OPERATOR.user, OPS_PASSWORD: OPERATOR.password },
    workerEnv: { WORKER_CONCURRENCY: '1', HASH_ENGINE: 'packages' },
    workerProgram: withDoubles,
  })
  return {
    ...spillway,
    async gateway(env: NodeJS.ProcessEnv = {}) {
      const gateway = await spillway.gateway({ env })
      await spillway.knowsWorkers()
      return Object.assign(gateway, { api: createApiClient(gateway.url, { timeoutMs: LONGEST_HOLD_MS }) })
    },
    async close(): Promise<void> {
      await spillway.close()
      await namespace.close()
    },
  }
}

/** Adds a job that no worker can open, by seal keys that are not the scene's. */
export async function addForeignJob({ redisUrl, queuePrefix: prefix }: Scene): Promise<void> {
  const log = createLogger({ service: 'scene', level: 'silent' })
  const client = new PasswordClient({ redisUrl, prefix, keyring: parseKeyring(newSealKey('foreign')), log })
  await until(() => client.isReady())
  const job = { id: newId(), name: 'verify', deadline: client.now() + JOB_LIFE_MS } as const
  const request = { password: 'a passphrase', storedHash: null }
  await client.submit({ job, request, admitted: client.admitTo('open'), presentMs: JOB_LIFE_MS })
  await client.close()
}
