// A Spillway on a database and Redis keys of its own, and a client of each gateway.

import { createLogger } from '@spillway/common/log'
import { runWithKeeper } from '@spillway/infra/processes/command'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { until } from '@spillway/infra/processes/until'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { createNamespace, testVariables } from '@spillway/infra/rig/namespace'
import { startTestServices } from '@spillway/infra/rig/services'
import { openSpillway } from '@spillway/infra/rig/spillway'
import { readEnvironment } from '@spillway/infra/start/places'
import { createPasswordClient, type PasswordClient, parseKeyring } from '@spillway/queue/queue-client'

export const OPERATOR = { user: 'operator', password: 'operators only' }

/** The longest time for which any scene holds a request. */
const LONGEST_HOLD_MS = 120_000

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

/** Ready to submit jobs. Other seal keys than the scene's make jobs that no worker can open. */
export async function openClient(
  { redisUrl, queuePrefix: prefix, sealKeys: ownKeys }: Scene,
  { sealKeys = ownKeys, jobLifeMs = 60_000 } = {},
): Promise<PasswordClient> {
  const log = createLogger({ service: 'scene', level: 'silent' })
  const client = createPasswordClient({ redisUrl, prefix, keyring: parseKeyring(sealKeys), jobLifeMs, log })
  await until(() => client.isReady())
  return client
}

/** An error of the command is reported and makes the exit code 1. */
export async function runWithServices(command: (keeper: Keeper, dir: string) => Promise<unknown>): Promise<void> {
  await runWithKeeper(async (keeper) => {
    const services = await startTestServices(keeper, readEnvironment(process.env))
    Object.assign(process.env, testVariables(services))
    await command(keeper, services.dir).finally(() => services.close())
  })
}
