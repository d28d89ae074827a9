// The one way to start a Spillway for a test, a measurement or a picture: gateways and workers as
// deployed, each a process, under a key prefix of their own.
import { randomBytes } from 'node:crypto'
import type { Keeper } from '../processes/keeper.ts'
import { type NodeOptions, type NodeProcess, startProcess } from '../processes/node-process.ts'
import { until } from '../processes/until.ts'
import { gatewayProgram, type Program, readinessOf, workerProgram } from '../start/member.ts'
import { newSealKey, newSigningKey } from '../start/secrets.ts'

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

export interface SpillwayOptions {
  databaseUrl: string
  redisUrl: string
  /** Of its keys in Redis [a random one]. */
  queuePrefix?: string
  /** Of both kinds, on top of what every Spillway has; in it the limits are off. */
  env?: NodeJS.ProcessEnv
  gatewayEnv?: NodeJS.ProcessEnv
  workerEnv?: NodeJS.ProcessEnv
  /** What workers run, as {@link withDoubles} [as deployed]. */
  workerProgram?: { entry: string }
  /** [one for all processes of tests] */
  keeper?: Keeper | undefined
  /** Once a member is ready [all]. */
  keepOnly?: 'warnings' | 'nothing' | undefined
}

const LIMITS = [
  ...['LIMIT_PER_ADDRESS', 'LIMIT_PER_ACCOUNT', 'GUESSES_PER_ACCOUNT', 'LIMIT_REDEEM_PER_ADDRESS'],
  ...['LIMIT_REFRESH_PER_ADDRESS', 'LIMIT_REFRESH_PER_SESSION', 'LIMIT_MAIL_PER_RECIPIENT', 'LIMIT_MAIL_PER_NETWORK'],
]

/** The program of a worker that takes doubles of stored hashes: doubles.mjs. */
export const withDoubles = { entry: 'infra/local/src/harness/worker-with-doubles.cjs' } as const

/** The settings by which all limits of a gateway are as high as this; 0 turns them off. */
export function limitsOf(most: number): NodeJS.ProcessEnv {
  return Object.fromEntries(LIMITS.map((name) => [name, String(most)]))
}

export type Spillway = ReturnType<typeof openSpillway>

/** Nothing runs in it yet. Needs a migrated database and what `pnpm build` makes. */
export function openSpillway(options: SpillwayOptions) {
  const { databaseUrl, redisUrl, queuePrefix = `{spillway-${randomBytes(6).toString('hex')}}` } = options
  const sealKeys = newSealKey()
  const shared = {
    REDIS_URL: redisUrl,
    QUEUE_PREFIX: queuePrefix,
    SPILLWAY_SEAL_KEYS: sealKeys,
    OPS_PORT: '0',
    LOG_LEVEL: 'info',
  }
  const environment = {
    ...shared,
    PORT: '0',
    DATABASE_URL: databaseUrl,
    SPILLWAY_JWT_KEYS: newSigningKey(),
    ...limitsOf(0),
    ...options.env,
    ...options.gatewayEnv,
  }
  const workerEnv = { ...shared, ...options.env, ...options.workerEnv }
  const gateways: GatewayProcess[] = []
  const workers: Member[] = []
  const starting = { gateways: 0, workers: 0 }

  const kept = { keeper: options.keeper, keepOnly: options.keepOnly }
  return {
    databaseUrl,
    redisUrl,
    queuePrefix,
    sealKeys,
    environment,
    /** All that were started, in order; those that have ended as well. */
    gateways,
    workers,
    async gateway({ env = {}, ...how }: MemberOptions = {}): Promise<GatewayProcess> {
      const name = `gateway ${++starting.gateways}`
      const gateway = await startMember(gatewayProgram, { name, ...kept, ...how, env: { ...environment, ...env } })
      gateways.push(gateway)
      return gateway
    },
    async worker({ env = {}, ...how }: MemberOptions = {}): Promise<Member> {
      const name = `worker ${++starting.workers}`
      const worker = await startMember(workerProgram, {
        name,
        ...kept,
        ...options.workerProgram,
        ...how,
        env: { ...workerEnv, ...env },
      })
      workers.push(worker)
      return worker
    },
    /** Waits until every gateway that runs knows of so many workers [all that run]. */
    async knowsWorkers(count = workers.filter(isRunning).length): Promise<void> {
      const asked = gateways.filter(isRunning)
      const knowAll = async () => {
        const told = await Promise.all(asked.map(({ url }) => readinessOf(url)))
        return told.every(({ workers }) => workers === count)
      }
      await until(knowAll, { what: `${count} workers known to every gateway` })
    },
    /** Gateways first: they stop asking. Gives a sentence for each member that ended badly. */
    async close(): Promise<string[]> {
      const ends = await Promise.all(gateways.map(end))
      return [...ends, ...(await Promise.all(workers.map(end)))].flat()
    },
  }
}

function isRunning({ exit }: Member): boolean {
  return exit === undefined
}

async function end(member: Member): Promise<string[]> {
  if (member.wasEnded && member.exit?.signal === 'SIGKILL') return []
  member.signal('SIGCONT')
  const { code, signal } = await member.stop().catch(async () => {
    await member.close()
    return member.exited
  })
  return code === 0 ? [] : [`${member.name} did not end well (${signal ?? code})`]
}
