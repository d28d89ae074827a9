// A Spillway of this checkout or of another one, each compiled, migrated and started by the code of its own checkout.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { type ApiClient, createApiClient } from '@spillway/infra/rig/api-client'
import { createAccounts } from '@spillway/infra/services/query'
import type { Part } from '../contenders/contender.ts'
import { TOKEN_HASH } from '../contenders/hashing.ts'
import { serverProcesses } from '../measure/cores.ts'

/** Counted as in production, but never reached: all callers come from one address. */
const UNREACHED = 1_000_000
/** Accounts of which each has few sessions. */
const ACCOUNTS = 2_000
const PASSWORD = 'whatever it is'
/** Two logins a second: their own cost is next to nothing beside what waits. */
const SLOW_HASH = '$spillway-wait$500$'
const SLOW_LIFE_MS = 3_600_000
/** A worker estimates by its first hash; it has to see what these take. */
const SLOW_LOGINS = 8
const PATIENCE_MS = 60_000

type Rig = typeof import('@spillway/infra/rig/spillway')
type OwnServices = typeof import('@spillway/infra/rig/services')

interface CostSystemOptions {
  /** [this one] */
  checkout?: string
  profilesDir?: string | undefined
  env?: NodeJS.ProcessEnv
}

export type CostSystem = Awaited<ReturnType<typeof openCostSystem>>

/**
 * Starts a gateway and a worker; and at their first use a second gateway, without a worker, whose queue is full, and a third one with a slow
 * worker, before which a thousand people wait for minutes.
 *
 * @param options `profilesDir`: where Node leaves the CPU profiles of gateway and worker; `env`: settings of both
 */
export async function openCostSystem(
  keeper: Keeper,
  { checkout = repositoryDir, profilesDir, env = {} }: CostSystemOptions = {},
) {
  const ofCheckout = (path: string) => pathToFileURL(join(checkout, 'infra/local/src', `${path}.ts`)).href
  const { limitsOf, openSpillway }: Rig = await import(ofCheckout('rig/spillway'))
  const { startOwnServices }: OwnServices = await import(ofCheckout('rig/services'))
  const packages = ['@spillway/api', '@spillway/worker']
  // Durable, because a commit takes its time in production.
  const services = await startOwnServices({ keeper, purpose: 'load', packages, durable: true })
  const { databaseUrl, redisUrl } = services
  const gatewayEnv = { ...limitsOf(UNREACHED), ...env }
  const workerEnv = { SPILLWAY_TEST_HASHES: 'true', WORKER_CONCURRENCY: '2', ...env }
  const shared = { databaseUrl, redisUrl, keeper, keepOnly: 'nothing' } as const
  const spillway = openSpillway({ ...shared, gatewayEnv, workerEnv })
  const full = openSpillway({ ...shared, gatewayEnv: { ...gatewayEnv, MAX_OUTSTANDING: '1' } })
  const nodeArgs = profilesDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profilesDir}`]
  const slow = openSpillway({
    ...shared,
    gatewayEnv: { ...gatewayEnv, TICKET_TTL_MS: String(SLOW_LIFE_MS) },
    workerEnv: { ...workerEnv, WORKER_CONCURRENCY: '1' },
  })
  let opened: Promise<{ api: ApiClient; parts: Part[] }> | undefined
  let openedSlow: ReturnType<typeof openSlow> | undefined

  async function openSlow() {
    const emails = await createAccounts(databaseUrl, 'slow', ACCOUNTS, SLOW_HASH)
    const [gateway, worker] = await Promise.all([slow.gateway(), slow.worker()])
    await slow.knowsWorkers()
    const api = createApiClient(gateway.url, { timeoutMs: PATIENCE_MS })
    let turn = 0
    const credentials = () => ({ email: emails[turn++ % emails.length] ?? '', password: PASSWORD })
    for (let n = 0; n < SLOW_LOGINS; n++) await api.login(credentials())
    return { api, url: gateway.url, credentials, parts: [part('gateway', gateway), part('worker', worker)] }
  }

  const close = async () => {
    await Promise.all([spillway.close(), full.close(), slow.close()])
    await services.close()
  }
  try {
    const [gateway, worker, emails] = await Promise.all([
      spillway.gateway({ nodeArgs }),
      spillway.worker({ nodeArgs }),
      createAccounts(databaseUrl, 'cost', ACCOUNTS, TOKEN_HASH),
    ])
    await spillway.knowsWorkers()
    let turn = 0
    return {
      api: createApiClient(gateway.url, { timeoutMs: PATIENCE_MS }),
      parts: [part('gateway', gateway), part('worker', worker)],
      full: () => {
        const open = async () => {
          const gateway = await full.gateway({ nodeArgs })
          return { api: createApiClient(gateway.url, { timeoutMs: PATIENCE_MS }), parts: [part('gateway', gateway)] }
        }
        opened ??= open()
        return opened
      },
      slow: () => {
        openedSlow ??= openSlow()
        return openedSlow
      },
      services,
      servers: serverProcesses(services),
      /** The next account's; the verdict costs no hash. */
      credentials: () => ({ email: emails[turn++ % emails.length] ?? '', password: PASSWORD }),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function part(role: string, { pid }: { pid: number }): Part {
  return { role, pid }
}
