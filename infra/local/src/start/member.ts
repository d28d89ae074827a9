// The gateway and the worker of `pnpm start`, from compiled code.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Keeper, logTailOf, stopOrder } from '../processes/keeper.ts'
import { repositoryDir } from '../processes/repository.ts'
import { startService } from '../services/service.ts'
import { choosePorts, type LocalEnvironment } from './places.ts'
import type { Secrets } from './secrets.ts'

/** The log line of `readyMessage` has the addresses: url and opsUrl. */
export const gatewayProgram = {
  entry: 'api/dist/main.js',
  readyMessage: 'gateway listening',
  stopOrder: stopOrder.gateway,
} as const

export const workerProgram = {
  entry: 'worker/dist/main.cjs',
  readyMessage: 'worker ready',
  stopOrder: stopOrder.worker,
} as const

export type Program = typeof gatewayProgram | typeof workerProgram

export async function readinessOf(gatewayUrl: string) {
  const response = await fetch(`${gatewayUrl}/readyz`)
  const { workers }: { workers: number } = JSON.parse(await response.text())
  return { ready: response.ok, workers }
}

interface BothOptions {
  keeper: Keeper
  environment: LocalEnvironment
  secrets: Secrets
  databaseUrl: string
  redisUrl: string
  logDir: string
  /** Prints a notice when one of them ends unexpectedly. */
  say: (sentence: string) => void
  /** Called when one of them could not be started again. */
  fail: (error: unknown) => void
}

/** The pause before a restart: a process that ends at once must not keep a processor busy. */
const RESTART_MS = 1_000

/** Resolves to their ports when both are ready. Needs a migrated database. */
export async function startBoth(options: BothOptions) {
  const { environment, secrets, databaseUrl, redisUrl } = options
  const { port, opsPort, workerOpsPort, servicePort } = await choosePorts(environment)
  const url = `http://127.0.0.1:${port}`
  const env = {
    // Verifiers on this machine find the keys by discovery.
    ISSUER: url,
    // The limits stay on. A load generator on this machine, such as `pnpm load spike --target`,
    // simulates clients by X-Forwarded-For.
    TRUST_PROXY: '127.0.0.1,::1',
    OPS_USER: 'operator',
    OPS_PASSWORD: secrets.opsPassword,
    SPILLWAY_SEAL_KEYS: secrets.sealKeys,
    SPILLWAY_JWT_KEYS: secrets.jwtKeys,
    // Shorter than the keeper's grace period.
    SHUTDOWN_GRACE_MS: '5000',
    ...environment.inherited,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
  }
  /** A gateway that does not know the worker yet would give tickets. */
  const isGatewayReady = async () => {
    const { ready, workers } = await readinessOf(url)
    return ready && workers > 0
  }
  const gatewayEnv = {
    ...env,
    PORT: String(port),
    OPS_PORT: String(opsPort),
    SERVICE_PORT: servicePort?.toString(),
  }
  const workerEnv = { ...env, OPS_PORT: String(workerOpsPort) }
  const isWorkerReady = async () => (await fetch(`http://127.0.0.1:${workerOpsPort}/readyz`)).ok
  await Promise.all([
    keepRunning('gateway', gatewayProgram, gatewayEnv, isGatewayReady, options),
    keepRunning('worker', workerProgram, workerEnv, isWorkerReady, options),
  ])
  return { port, opsPort, workerOpsPort, servicePort }
}

/** Starts it, and again whenever it ends after it was ready. */
async function keepRunning(
  name: string,
  { entry, stopOrder }: Program,
  env: NodeJS.ProcessEnv,
  isReady: () => Promise<boolean>,
  options: BothOptions,
): Promise<void> {
  const { keeper, say, fail } = options
  const logFile = join(options.logDir, `${name}.log`)
  const program = { command: process.execPath, args: [entry], cwd: repositoryDir, env, stopOrder }
  const start = () => startService({ keeper, name, process: program, logFile, url: '', ping: isReady })
  const watch = async ({ exited }: { exited: Promise<string> }): Promise<void> => {
    const how = await exited
    if (keeper.closing) return
    say(`${name} ended (${how}) and is started again. Its log ends with: ${logTailOf(logFile)}`)
    await sleep(RESTART_MS)
    if (!keeper.closing) await watch(await start())
  }
  watch(await start()).catch(fail)
}
