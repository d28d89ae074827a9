// The gateways and workers of a local run: their environment, and the wait until they can log someone in.
import { join } from 'node:path'
import type { Keeper } from '../processes/keeper.ts'
import { until } from '../processes/until.ts'
import { UserError } from '../processes/user-error.ts'
import type { LocalEnvironment } from './environment.ts'
import { startMember } from './member.ts'
import { hostToDial, type Place, placeIn, toVariables } from './places.ts'
import { gatewayProgram, type Program, readinessOf, workerProgram } from './programs.ts'
import type { Secrets } from './secrets.ts'

export interface ClusterOptions {
  keeper: Keeper
  environment: LocalEnvironment
  secrets: Secrets
  gateways: Place[]
  workers: Place[]
  databaseUrl: string
  redisUrl: string
  logDir: string
  /** Told of every death. */
  say: (sentence: string) => void
  /** Told when a member that died could not be started again. */
  fail: (error: unknown) => void
}

const readyMs = 30_000

/** Members say in their log that they are ready. Throws a UserError for a LOG_LEVEL at which they would not. */
export function expectReadyLines({ LOG_LEVEL: level = '' }: NodeJS.ProcessEnv): void {
  if (!['warn', 'error', 'fatal', 'silent'].includes(level)) return
  throw new UserError(`LOG_LEVEL must be info, debug or trace here, not "${level}": the log tells when all is ready.`)
}

/**
 * Starts all members at once and resolves when every gateway is ready to log someone in, with where they listen. Needs a
 * migrated database.
 */
export async function startCluster(options: ClusterOptions): Promise<{ gateways: Place[]; workers: Place[] }> {
  const { keeper, environment, secrets, databaseUrl, redisUrl, logDir, say, fail } = options
  const env = {
    // The limit on an address stays on. Whoever plays a crowd on this machine, as `pnpm load spike --target` does, says so as a
    // balancer would; others are not believed.
    TRUST_PROXY: '127.0.0.1,::1',
    OPS_USER: 'operator',
    OPS_PASSWORD: secrets.opsPassword,
    SPILLWAY_SEAL_KEYS: secrets.sealKeys,
    SPILLWAY_JWT_KEYS: secrets.jwtKeys,
    // Less than the keeper's patience.
    SHUTDOWN_GRACE_MS: '5000',
    ...environment.inherited,
    HOST: environment.host,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
  }
  const start = async (place: Place, program: Program): Promise<Place> => {
    const { name } = place
    const ready = await startMember({
      keeper,
      name,
      program,
      env: { ...env, ...toVariables(place) },
      // Who is started again is found where the first one was.
      envAgain: (line) => toVariables(placeIn(line, name)),
      logFile: join(logDir, `${name.replace(' ', '-')}.log`),
      say,
      fail,
    })
    return placeIn(ready, name)
  }
  const [gateways, workers] = await Promise.all([
    Promise.all(options.gateways.map((place) => start(place, gatewayProgram))),
    Promise.all(options.workers.map((place) => start(place, workerProgram))),
  ])
  await Promise.all(gateways.map((place) => isReady(place, environment.host, workers.length)))
  return { gateways, workers }
}

/** A login that is quicker than the gateway's next look at the queue would be given a ticket, so it has to know the workers. */
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
