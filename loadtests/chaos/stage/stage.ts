// A stage is a PostgreSQL server with accounts, and the Redis program of this machine. Each lane
// has one. A scenario starts Redis servers, gateways and workers on it; scenarios of a family share
// them.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Keeper } from '@spillway/infra/processes/keeper'
import type { LogLine } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { ask, type Credentials, readMetric } from '@spillway/infra/rig/api-client'
import { closedLoop } from '@spillway/infra/rig/open-loop'
import { startOwnServices } from '@spillway/infra/rig/services'
import { openSpillway, type Spillway, type SpillwayOptions } from '@spillway/infra/rig/spillway'
import { startRedis } from '@spillway/infra/services/redis'
import { Accounts, type Credential } from '../../load/accounts.ts'
import type { VisitorOptions } from '../../load/visit.ts'
import type { Findings } from '../findings.ts'

export type Stage = Awaited<ReturnType<typeof openStage>>

/** A Redis server that scenarios may kill, freeze, fill and restart on its append-only file. */
export type RedisServer = Awaited<ReturnType<Stage['redis']>>

/** @param say prints notices, for instance before a download */
export async function openStage(keeper: Keeper, say: (sentence: string) => void) {
  const services = await startOwnServices({ keeper, purpose: 'chaos', say })
  const { databaseUrl: url } = services
  /** Options of every search for a Redis server, without its data folder. */
  const search = { keeper, durable: true, say }
  const newDir = (purpose: string) => mkdtempSync(join(services.dir, `${purpose}-`))
  const closers: (() => Promise<void>)[] = []
  return {
    keeper,
    /** What ends before the stage's own services do. */
    closers,
    /** End what a scenario left running. Called after each scenario. */
    endings: new Set<() => Promise<unknown>>(),
    search,
    postgres: { ...services.postgres, url },
    accounts: new Accounts(url),
    /** A folder of its own, new at each call. */
    newDir,
    /** On a free port of the loopback interface, without a password. */
    async redis(settings: Record<string, string> = {}) {
      const dir = newDir('redis')
      const server = await startRedis({ ...search, dir, logFile: join(dir, 'redis.log'), settings })
      const { hostname: host, port } = new URL(server.url)
      // It may be frozen when it is closed.
      return { ...server, host, port: Number(port), close: server.kill }
    },
    async close() {
      await Promise.all(closers.map((close) => close()))
      await services.close()
    },
  }
}

// The gateways and workers of a scenario, and what went wrong with them: no crash is overlooked.

export type System = ReturnType<typeof systemOf>

export interface OwnSystem extends System {
  redis: RedisServer
}

function systemOf(spillway: Spillway, { accounts }: Stage, credential: Credential) {
  const { gateways, workers } = spillway
  const login = (number: number): Credentials => accounts.login(credential, number)
  return {
    ...spillway,
    login,
    /** A visitor of all gateways that were started so far. */
    visitor: (): VisitorOptions => ({ urls: gateways.map(({ url }) => url), login }),
    /** Sends a request to a gateway: they take turns. */
    ask: (turn: number, path: string, options: Parameters<typeof ask>[2]) =>
      ask(gateways[turn % gateways.length]?.url ?? '', path, options),
    /** The jobs of the first worker with this outcome. */
    jobs: (outcome = 'hashed'): Promise<number> =>
      readMetric(workers[0]?.opsUrl ?? '', 'spillway_jobs_total', `outcome="${outcome}"`),
  }
}

interface SystemOptions extends Pick<SpillwayOptions, 'gatewayEnv' | 'workerEnv'> {
  /** The hash of the accounts [wait-20]. */
  credential?: Credential
  /** How many are started [2]. */
  gateways?: number
  workers?: number
}

/** Workers whose hashes wait for so long in so many slots, and need no processor time. */
export function waitingSlots(slots: number, serviceMs: number) {
  return {
    size: { credential: `wait-${serviceMs}`, workerEnv: { WORKER_CONCURRENCY: String(slots) } } as const,
    /** The capacity of each. */
    perSecond: (slots * 1_000) / serviceMs,
  }
}

interface Redis {
  url: string
  /** Of the Spillway on it [the stage's]. */
  databaseUrl?: string
  close(): Promise<void>
}

type ScenarioRun = (stage: Stage) => Promise<Findings>
type Run<T> = (system: System, redis: T, stage: Stage) => Promise<Findings>

/** Starts a Spillway on a started Redis. Doubles of hashes cost no processor time. */
async function open<T extends Redis>(
  stage: Stage,
  start: (stage: Stage) => Promise<T>,
  { credential = 'wait-20', gateways = 2, workers = 2, ...options }: SystemOptions,
) {
  const { keeper, postgres, accounts } = stage
  const redis = await start(stage)
  const spillway = openSpillway({
    databaseUrl: redis.databaseUrl ?? postgres.url,
    redisUrl: redis.url,
    keeper,
    keepOnly: 'warnings',
    ...options,
    env: { SPILLWAY_TEST_HASHES: 'true' },
    workerEnv: { WORKER_CONCURRENCY: '4', ...options.workerEnv },
  })
  async function close(): Promise<void> {
    await spillway.close()
    await redis.close()
  }
  try {
    await Promise.all([
      ...Array.from({ length: workers }, () => spillway.worker()),
      ...Array.from({ length: gateways }, () => spillway.gateway()),
    ])
    await spillway.knowsWorkers(workers)
    await accounts.seed(credential)
  } catch (error) {
    await close()
    throw error
  }
  return {
    /** A process that crashed, or printed what is no log line, is a broken promise. */
    async try(run: Run<T>): Promise<Findings> {
      const findings = await run(systemOf(spillway, stage, credential), redis, stage)
      findings.broken.push(...complaints(spillway))
      if (findings.broken.length > 0) findings.notes.push(...warnings(spillway))
      return findings
    },
    close,
  }
}

/** The run of a scenario on a Spillway of its own, which ends whatever happens. */
export function onRedis<T extends Redis>(
  start: (stage: Stage) => Promise<T>,
  options: SystemOptions,
  run: Run<T>,
): ScenarioRun {
  return async (stage) => {
    const opened = await open(stage, start, options)
    try {
      return await opened.try(run)
    } finally {
      await opened.close()
    }
  }
}

/**
 * Makes runs that share a Spillway, started by the first run on a stage. Each mends what it breaks.
 */
export function onSharedRedis<T extends Redis>(start: (stage: Stage) => Promise<T>, options: SystemOptions) {
  const ofStages = new WeakMap<Stage, ReturnType<typeof open<T>>>()
  return (run: Run<T>): ScenarioRun =>
    async (stage) => {
      const opening = ofStages.get(stage) ?? open(stage, start, options)
      ofStages.set(stage, opening)
      const opened = await opening
      if (!stage.closers.includes(opened.close)) stage.closers.push(opened.close)
      return await opened.try(run)
    }
}

/** The same on one of its own. */
export function onOwnRedis(
  options: SystemOptions,
  run: (system: OwnSystem, stage: Stage) => Promise<Findings>,
): ScenarioRun {
  return onRedis(
    (stage) => stage.redis(),
    options,
    (system, redis, stage) => run({ ...system, redis }, stage),
  )
}

/** A sentence for each process that crashed, or printed a stack or a warning of Node.js. */
function complaints({ gateways, workers }: Spillway): string[] {
  return [...gateways, ...workers].flatMap(({ name, exit, wasEnded, logs }) => {
    const strays = logs.filter(({ level }) => level === undefined).map(({ msg }) => msg)
    const crash = exit && !wasEnded && `${name} crashed (${exit.signal ?? exit.code}): ${strays.slice(-5).join(' / ')}`
    const print = strays.length > 0 && `${name} printed: ${strays.slice(0, 5).join(' / ')}`
    return [crash, print].filter((sentence) => typeof sentence === 'string')
  })
}

/** The commonest warnings of all processes, each with how often it came. */
function warnings({ gateways, workers }: Spillway): string[] {
  const times = new Map<string, number>()
  for (const { name, logs } of [...gateways, ...workers]) {
    for (const { msg, err } of logs.filter(isWarning)) {
      const text = `${name}: ${msg} (${JSON.stringify(err)?.slice(0, 200)})`
      times.set(text, (times.get(text) ?? 0) + 1)
    }
  }
  const commonest = [...times].toSorted(([, a], [, b]) => b - a).slice(0, 8)
  return commonest.map(([text, count]) => `${count} × ${text}`)
}

function isWarning({ level }: LogLine): boolean {
  return level !== undefined && level !== 'info'
}

/** Resolves when no job is left: waiting, held, deferred or in hand. */
export async function drained({ redis, queuePrefix }: OwnSystem, timeoutMs = 10_000): Promise<void> {
  const keys = ['wait', 'prioritized', 'active'].map((part) => `${queuePrefix}:passwords:${part}`)
  const count = `return redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]) + redis.call('LLEN', KEYS[3])`
  const isEmpty = async () => Number(await redis.command('EVAL', count, keys.length, ...keys)) === 0
  await until(isEmpty, { timeoutMs, what: 'an empty queue' })
}

/**
 * Keys that stay: BullMQ's own, jobs kept for operators, what workers and gateways publish,
 * numbers.
 */
const STAYING =
  /^:(passwords:(events|id|meta|marker|stalled-check|stalled|completed|failed|pc|[0-9a-f-]{36})|capacity|canary|gateways|line)$/

/** Once every ticket has expired, within timeoutMs, no key may be left but those that stay. */
export async function expectNoLeftovers(findings: Findings, system: OwnSystem, timeoutMs: number): Promise<void> {
  const { redis, queuePrefix } = system
  let left: string[] = []
  const areGone = async () => {
    const keys = await redis.command('KEYS', `${queuePrefix}*`)
    const names = Array.isArray(keys) ? keys.map((key) => String(key).slice(queuePrefix.length)) : []
    left = names.filter((name) => !STAYING.test(name))
    return left.length === 0
  }
  const gone = await until(areGone, { timeoutMs }).catch(() => false)
  findings.expect(gone, `keys stay in Redis: ${left.slice(0, 5).join(', ')}`)
}

/** Of a person who logs in from home. */
export const homeAddress = (person: number): string => `192.0.2.${person + 1}`

/** Logs some people in from home, and gives the tokens of their devices. */
export async function deviceTokens(
  system: System,
  people: number,
  { firstAccount = 0, atATime = 1 }: { firstAccount?: number; atATime?: number },
): Promise<string[]> {
  const tokens: string[] = []
  async function logIn(person: number): Promise<void> {
    const options = { body: system.login(firstAccount + person), headers: { 'x-forwarded-for': homeAddress(person) } }
    const { status, body } = await system.ask(person, '/v1/login', options)
    if (body.deviceToken === undefined) throw new Error(`a first login was answered ${status}`)
    tokens[person] = body.deviceToken
  }
  let next = 0
  await closedLoop({ callers: atATime, isOver: () => next >= people, call: () => logIn(next++) })
  return tokens
}
