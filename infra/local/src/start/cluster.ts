// Starts the gateways and workers of a local run, and waits until logins succeed.
import { UserError } from '../processes/command-line.ts'
import { until } from '../processes/until.ts'
import type { LocalEnvironment } from './environment.ts'
import { gatewayProgram, type MemberOptions, readinessOf, startMember, workerProgram } from './member.ts'
import { hostToDial, type Place } from './places.ts'
import type { Secrets } from './secrets.ts'

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
  // Verifiers on this machine find the keys by discovery. A URL beyond the loopback would have to be https.
  const isLocal = port !== 0 && ['127.0.0.1', 'localhost', '[::1]'].includes(host)
  const env = {
    ...(isLocal ? { ISSUER: `http://${host}:${port}` } : {}),
    // The limits stay on. A load generator on this machine, such as `pnpm load spike --target`, simulates clients by X-Forwarded-For.
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

/** Waits until a gateway is ready and knows the workers: before its next reading of the queue a login would get a ticket. */
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
