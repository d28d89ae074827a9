// Gateways and workers as processes, from compiled code: one of them, or those of `pnpm start`.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { UserError } from '../processes/command-line.ts'
import { type Keeper, logTailOf, stopOrder } from '../processes/keeper.ts'
import { type Exit, type NodeOptions, type NodeProcess, startProcess } from '../processes/node-process.ts'
import { until } from '../processes/until.ts'
import { type LocalEnvironment, type Ports, portsIn } from './places.ts'
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

export interface Member extends NodeProcess {
  name: string
  opsUrl: string
}

export interface GatewayProcess extends Member {
  url: string
  /** Undefined without SERVICE_KEYS. */
  serviceUrl: string | undefined
}

export interface MemberOptions extends NodeOptions {
  name?: string
  /** What Node runs [the program of its kind]. */
  entry?: string
  /** The lines of its output to keep once it is ready [all]. */
  keepOnly?: 'warnings' | 'nothing' | undefined
}

/** Many of them start at once on few processors. */
const READY_WITHIN_MS = 120_000

/** Rejects with its last lines if it does not become ready, and ends it. */
export async function startMember(program: Program, options: MemberOptions): Promise<GatewayProcess> {
  const { readyMessage, stopOrder } = program
  const { entry = program.entry, name = entry, keepOnly, ...how } = options
  const member = startProcess({ entry, stopOrder, ...how })
  try {
    const { url, opsUrl, serviceUrl } = await member.waitForLog(({ msg }) => msg === readyMessage, READY_WITHIN_MS)
    if (keepOnly !== undefined) member.keepOnly(keepOnly)
    return Object.assign(member, {
      name,
      url: String(url),
      opsUrl: String(opsUrl),
      serviceUrl: serviceUrl === undefined ? undefined : String(serviceUrl),
    })
  } catch (error) {
    await member.close()
    throw error
  }
}

export async function readinessOf(gatewayUrl: string) {
  const response = await fetch(`${gatewayUrl}/readyz`)
  const text = await response.text()
  const { workers }: { workers: number } = JSON.parse(text)
  return { ready: response.ok, workers, text }
}

// Both of `pnpm start`.

export interface BothPlaces {
  environment: LocalEnvironment
  /** The ports that they take. */
  gateway: Ports
  worker: Ports
  databaseUrl: string
  redisUrl: string
  logDir: string
}

interface BothOptions extends BothPlaces {
  keeper: Keeper
  secrets: Secrets
  /** Prints a notice when a member ends unexpectedly. */
  say: (sentence: string) => void
  /** Called when a member could not be restarted. */
  fail: (error: unknown) => void
}

const READY_MS = 30_000
/** The pause before a restart: a member that ends at once must not keep a processor busy. */
const RESTART_MS = 1_000

/** Throws a UserError for a LOG_LEVEL that hides the log lines of ready members. */
export function expectReadyLines({ LOG_LEVEL: level = '' }: NodeJS.ProcessEnv): void {
  if (!['warn', 'error', 'fatal', 'silent'].includes(level)) return
  throw new UserError(`LOG_LEVEL must be info, debug or trace here, not "${level}": the log tells when all is ready.`)
}

/** Resolves to where both listen, when the gateway is ready. Needs a migrated database. */
export async function startBoth(options: BothOptions) {
  const { environment, secrets, databaseUrl, redisUrl } = options
  const { PORT: port } = options.gateway
  const env = {
    // Verifiers on this machine find the keys by discovery.
    ...(port === '0' ? {} : { ISSUER: `http://127.0.0.1:${port}` }),
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
  const [gateway, worker] = await Promise.all([
    keepRunning('gateway', options.gateway, env, options),
    keepRunning('worker', options.worker, env, options),
  ])
  await isReady(`http://127.0.0.1:${gateway.PORT}`)
  return { gateway, worker }
}

/** Starts a member, again whenever it ends after it was ready. Resolves to where it listens. */
async function keepRunning(
  name: 'gateway' | 'worker',
  ports: Ports,
  env: NodeJS.ProcessEnv,
  options: BothOptions,
): Promise<Ports> {
  const { keeper, say, fail } = options
  const program = name === 'gateway' ? gatewayProgram : workerProgram
  const logFile = join(options.logDir, `${name}.log`)
  const how = { name, keeper, logFile, env: { ...env, ...ports }, keepOnly: 'nothing' } as const
  const member = await startMember(program, how).catch((cause) => {
    throw new UserError(`${name} did not start: ${logTailOf(logFile)} (its log: ${logFile})`, { cause })
  })
  // Started again, it listens where it did before.
  const taken = portsIn(name === 'gateway' ? member : { opsUrl: member.opsUrl })
  const startAgain = async ({ code, signal }: Exit): Promise<void> => {
    if (keeper.closing) return
    say(
      `${name} ended (${signal ?? `exit code ${code}`}) and is started again. Its log ends with: ${logTailOf(logFile)}`,
    )
    await sleep(RESTART_MS)
    if (!keeper.closing) await keepRunning(name, taken, env, options)
  }
  member.exited.then(startAgain).catch(fail)
  return taken
}

/** A gateway that does not know the worker yet would give tickets. */
async function isReady(gatewayUrl: string): Promise<void> {
  let answer = 'no answer'
  const ready = async (): Promise<boolean> => {
    const readiness = await readinessOf(gatewayUrl)
    answer = readiness.text
    return readiness.ready && readiness.workers > 0
  }
  await until(ready, { timeoutMs: READY_MS }).catch((cause) => {
    throw new UserError(`The gateway listens, but says that it is not ready: ${answer}`, { cause })
  })
}
