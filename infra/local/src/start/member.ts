// Runs gateways and workers as processes, from compiled code, until logins succeed. A member that
// ends after it was ready is restarted, as in a cluster; one that does not become ready ends the
// run.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { UserError } from '../processes/command-line.ts'
import { type Keeper, logTailOf, stopOrder } from '../processes/keeper.ts'
import { repositoryDir } from '../processes/repository.ts'
import { until } from '../processes/until.ts'
import { startService } from '../services/service.ts'
import { hostToDial, type LocalEnvironment, type Place, placeIn, toVariables } from './places.ts'
import type { Secrets } from './secrets.ts'

export interface MemberOptions {
  keeper: Keeper
  place: Place
  program: Program
  /** All but its ports. */
  env: NodeJS.ProcessEnv
  logDir: string
  /** Prints a notice when it ends unexpectedly. */
  say: (sentence: string) => void
  /** Called when it could not be restarted. */
  fail: (error: unknown) => void
}

/** The pause before a restart, so that a member that ends at once does not keep a processor busy. */
const restartMs = 1_000

/**
 * Starts a member and resolves with its place. Rejects with a UserError that contains its log tail
 * if it does not become ready.
 */
async function startMember(options: MemberOptions): Promise<Place> {
  const { keeper, program, env, logDir, say, fail } = options
  const { name } = options.place
  const logFile = join(logDir, `${name.replace(' ', '-')}.log`)
  const before = existsSync(logFile) ? statSync(logFile).size : 0
  let { place } = options
  const { exited } = await startService({
    keeper,
    name,
    logFile,
    keepsLog: true,
    url: '',
    process: {
      command: process.execPath,
      args: [program.entry],
      stopOrder: program.stopOrder,
      env: { ...env, ...toVariables(place) },
      cwd: repositoryDir,
    },
    async ping() {
      const line = findLine(readFileSync(logFile).subarray(before).toString(), program.readyMessage)
      if (line) place = placeIn(line, name)
      return line !== undefined
    },
  })
  exited
    .then(async (how) => {
      if (keeper.closing) return
      say(`${name} ended (${how}) and is started again. Its log ends with: ${logTailOf(logFile)}`)
      await sleep(restartMs)
      // It listens where it did before.
      if (!keeper.closing) await startMember({ ...options, place })
    })
    .catch(fail)
  return place
}

/** The log line by which a gateway or worker reports that it is ready. */
function findLine(log: string, message: string): Record<string, unknown> | undefined {
  // The last line may be incomplete.
  const lines = log.split('\n').slice(0, -1)
  const found = lines.filter((line) => line.includes(message)).map((line) => JSON.parse(line))
  return found.find(({ msg }) => msg === message)
}

/**
 * The entry is the module that Node runs, from the root of the checkout; the log line of this
 * message has the addresses: url and opsUrl.
 */
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

/** Reads a gateway's readiness, and how many workers it knows of. Rejects when it does not answer. */
export async function readinessOf(gatewayUrl: string) {
  const response = await fetch(`${gatewayUrl}/readyz`)
  const text = await response.text()
  const { workers }: { workers: number } = JSON.parse(text)
  return { ready: response.ok, workers, text }
}

// Starts the gateways and workers of a local run, and waits until logins succeed.

export interface ClusterOptions extends Pick<MemberOptions, 'keeper' | 'logDir' | 'say' | 'fail'> {
  environment: LocalEnvironment
  secrets: Secrets
  gateways: Place[]
  workers: Place[]
  databaseUrl: string
  redisUrl: string
}

const readyMs = 30_000

/** Throws a UserError for a LOG_LEVEL that hides the log line by which members report that they are ready. */
export function expectReadyLines({ LOG_LEVEL: level = '' }: NodeJS.ProcessEnv): void {
  if (!['warn', 'error', 'fatal', 'silent'].includes(level)) return
  throw new UserError(`LOG_LEVEL must be info, debug or trace here, not "${level}": the log tells when all is ready.`)
}

/** Starts all members at once. Resolves with their addresses when every gateway is ready. Needs a migrated database. */
export async function startCluster(options: ClusterOptions): Promise<{ gateways: Place[]; workers: Place[] }> {
  const { environment, secrets, databaseUrl, redisUrl } = options
  const [{ port = 0 } = {}] = options.gateways
  const host = hostToDial(environment.host)
  // Verifiers on this machine find the keys by discovery. A URL beyond the loopback would have to
  // be https.
  const isLocal = port !== 0 && ['127.0.0.1', 'localhost', '[::1]'].includes(host)
  const env = {
    ...(isLocal ? { ISSUER: `http://${host}:${port}` } : {}),
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
    HOST: environment.host,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
  }
  const [gateways, workers] = await Promise.all([
    Promise.all(options.gateways.map((place) => startMember({ ...options, env, place, program: gatewayProgram }))),
    Promise.all(options.workers.map((place) => startMember({ ...options, env, place, program: workerProgram }))),
  ])
  await Promise.all(gateways.map((place) => isReady(place, environment.host, workers.length)))
  return { gateways, workers }
}

/**
 * Waits until a gateway is ready and knows the workers: before its next reading of the queue a
 * login would get a ticket.
 */
async function isReady({ name, port }: Place, host: string, workers: number): Promise<void> {
  const url = `http://${hostToDial(host)}:${port}`
  let answer = 'no answer'
  const ready = async (): Promise<boolean> => {
    const readiness = await readinessOf(url)
    answer = readiness.text
    return readiness.ready && readiness.workers >= workers
  }
  await until(ready, { timeoutMs: readyMs }).catch((cause) => {
    throw new UserError(`${name} listens, but says that it is not ready: ${answer}`, { cause })
  })
}
