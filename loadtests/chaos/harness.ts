// What scenarios share: the servers, a Spillway on a Redis server of its own, people who come to
// it, and what was found.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, type Credentials, readMetric } from '@spillway/infra/harness/api-client'
import { startOwnServices } from '@spillway/infra/harness/services'
import { openSpillway, type Spillway, withDoubles } from '@spillway/infra/harness/spillway'
import { startProxy } from '@spillway/infra/harness/tcp-proxy'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { until } from '@spillway/infra/processes/until'
import { startRedis } from '@spillway/infra/services/redis'
import { readinessOf } from '@spillway/infra/start/member'
import { Accounts, type Credential } from '../load/accounts.ts'
import { startTraffic, type Visit, Visitor, type VisitorOptions } from '../load/visit.ts'
import { quantile } from '../measure/quantile.ts'

export interface Scenario {
  name: string
  /** One sentence. */
  promise: string
  try(trial: Trial): Promise<void>
}

export type Servers = Awaited<ReturnType<typeof openServers>>

/** PostgreSQL with accounts, for all scenarios of a run. */
export async function openServers(keeper: Keeper, say: (sentence: string) => void) {
  const services = await startOwnServices({ keeper, purpose: 'chaos', say })
  return {
    keeper,
    dir: services.dir,
    postgres: { ...services.postgres, url: services.databaseUrl },
    accounts: new Accounts(services.databaseUrl),
    close: services.close,
  }
}

/** A Redis server that a scenario may kill, freeze, fill, and restart on its append-only file. */
export type RedisServer = Awaited<ReturnType<Trial['redis']>>

export type System = Awaited<ReturnType<Trial['spillway']>>

interface SystemOptions {
  gatewayEnv?: NodeJS.ProcessEnv
  workerEnv?: NodeJS.ProcessEnv
  /** The stored hash of the accounts [wait-20]. */
  hash?: Credential
  /** How many are started [2]. */
  gateways?: number
  workers?: number
  /** [a Redis server of its own] */
  redisUrl?: string
  /** [directly] */
  databaseUrl?: string
}

interface Coming {
  /** Changes to the visitor of all gateways. */
  people?: Partial<VisitorOptions>
  /** How long people come before and after the fault, in ms [2,000, 5,000]. */
  calmMs?: number
  afterMs?: number
}

/** Of the time after a fault, the last, in which all must go well again. */
const RECOVERED_MS = 1_500
/** A visit that takes longer than the calm's median by this is not back to normal. */
const NORMAL_EXTRA_MS = 1_000
const PROBE_EVERY_MS = 200

/** One run of a scenario: starts what it needs, counts, and ends everything. */
export class Trial {
  readonly servers: Servers
  readonly figures: string[] = []
  /** A sentence for each promise that did not hold. */
  readonly broken: string[] = []
  readonly visits: Visit[] = []
  readonly #endings: (() => unknown)[] = []

  constructor(servers: Servers) {
    this.servers = servers
  }

  /** The last is ended first. */
  atEnd(end: () => unknown): void {
    this.#endings.unshift(end)
  }

  figure(text: string): void {
    this.figures.push(text)
  }

  expect(holds: boolean, broken: string): void {
    if (!holds) this.broken.push(broken)
  }

  /** A figure that breaks a promise unless the condition holds. */
  expectFigure(holds: boolean, figure: string): void {
    this.figure(figure)
    this.expect(holds, figure)
  }

  expectAllAnswered(visits: readonly Visit[] = this.visits): void {
    const others = visits.filter(({ end }) => end !== 'answered')
    this.expect(others.length === 0, `not answered: ${countBy(others.map(({ end, detail }) => `${end}, ${detail}`))}`)
  }

  /** Each visit has a result, or a refusal that says when to come back. */
  expectAllDefined(): void {
    const others = this.visits.filter(({ end }) => end !== 'answered' && end !== 'refused')
    this.expect(others.length === 0, `not defined: ${countBy(others.map(({ end, detail }) => `${end}, ${detail}`))}`)
  }

  async redis(settings: Record<string, string> = {}) {
    const { keeper } = this.servers
    const dir = this.newDir('redis')
    const say = () => undefined
    const server = await startRedis({ keeper, durable: true, say, dir, logFile: join(dir, 'redis.log'), settings })
    // It may be frozen when it ends.
    this.atEnd(server.kill)
    return { ...server, port: Number(new URL(server.url).port) }
  }

  newDir(purpose: string): string {
    return mkdtempSync(join(this.servers.dir, `${purpose}-`))
  }

  /** A way to PostgreSQL that can be made slow. */
  async postgresProxy() {
    const proxy = await startProxy(this.servers.postgres.url)
    this.atEnd(proxy.close)
    return proxy
  }

  async spillway({ hash = 'wait-20', gateways = 2, workers = 2, redisUrl, databaseUrl, ...env }: SystemOptions) {
    const { keeper, postgres, accounts } = this.servers
    const redis = redisUrl === undefined ? await this.redis() : undefined
    const spillway = openSpillway({
      databaseUrl: databaseUrl ?? postgres.url,
      redisUrl: redisUrl ?? redis?.url ?? '',
      keeper,
      keepOnly: 'warnings',
      workerProgram: withDoubles,
      gatewayEnv: env.gatewayEnv ?? {},
      workerEnv: { WORKER_CONCURRENCY: '4', ...env.workerEnv },
    })
    this.atEnd(async () => {
      await spillway.close()
      this.broken.push(...[...spillway.gateways, ...spillway.workers].flatMap(complaint))
      if (this.broken.length > 0) this.figures.push(...warnings(spillway))
    })
    await Promise.all([
      ...Array.from({ length: workers }, () => spillway.worker()),
      ...Array.from({ length: gateways }, () => spillway.gateway()),
    ])
    await spillway.knowsWorkers(workers)
    await accounts.seed(hash)

    const login = (number: number): Credentials => accounts.login(hash, number)
    const visitor = (changes: Partial<VisitorOptions> = {}): VisitorOptions => ({
      urls: spillway.gateways.map(({ url }) => url),
      login,
      ...changes,
    })
    return {
      ...spillway,
      login,
      visitor,
      people: (changes?: Partial<VisitorOptions>) => new Visitor(visitor(changes)),
      /** Sends a request to a gateway: they take turns. */
      ask: (turn: number, path: string, options: Parameters<typeof ask>[2]) =>
        ask(spillway.gateways[turn % spillway.gateways.length]?.url ?? '', path, options),
      /** What the workers that run have counted together. */
      async workersTell(metric: string, ...labels: string[]): Promise<number> {
        const running = spillway.workers.filter(({ exit }) => exit === undefined)
        const told = await Promise.all(running.map(({ opsUrl }) => readMetric(opsUrl, metric, ...labels)))
        return told.reduce((sum, each) => sum + each, 0)
      },
      /** Its own Redis server. */
      get redis() {
        if (redis === undefined) throw new Error('this Spillway was given a Redis URL')
        return redis
      },
    }
  }

  /**
   * People log in at a steady rate before, during and after a fault, which is mended when it
   * resolves. Each of them has a defined answer, and in the end all goes well again.
   */
  async whilePeopleCome(
    system: System,
    perSecond: number,
    fault: () => Promise<unknown>,
    { people = {}, calmMs = 2_000, afterMs = 5_000 }: Coming = {},
  ): Promise<void> {
    const traffic = startTraffic(system.visitor(people), perSecond)
    let [brokenAtMs, mendedAtMs] = [0, 0]
    try {
      await sleep(calmMs)
      brokenAtMs = performance.now()
      await fault()
      mendedAtMs = performance.now()
      await sleep(afterMs)
    } finally {
      // Also where the fault throws: the traffic must not run beside the next scenario.
      this.visits.push(...(await traffic.stop()))
    }
    const calm = this.visits.filter(({ dueMs, tookMs }) => dueMs + tookMs < brokenAtMs)
    const usualMs = tookAt(calm, 0.5)
    const affected = this.visits.filter(({ end, dueMs, tookMs }) => end === 'answered' && dueMs + tookMs >= brokenAtMs)
    const after = this.visits.filter(({ dueMs }) => dueMs >= mendedAtMs)
    const unwell = after.filter(({ end, tookMs }) => end !== 'answered' || tookMs > usualMs + NORMAL_EXTRA_MS)
    const extraMs = Math.max(0, ...affected.map(({ tookMs }) => tookMs - usualMs))
    const recoveryMs = Math.max(0, ...unwell.map(({ dueMs }) => dueMs - mendedAtMs))
    this.figure(`slowest ${seconds(extraMs)} s over usual, recovered ${seconds(recoveryMs)} s after the fault`)
    const late = after.filter(({ end, dueMs }) => end !== 'answered' && dueMs > mendedAtMs + afterMs - RECOVERED_MS)
    this.expect(calm.length > 0 && calm.every(({ end }) => end === 'answered'), 'not all went well before the fault')
    this.expect(late.length === 0, `${late.length} logins were not answered when the fault was long over`)
    this.expectAllDefined()
  }

  /** A load balancer before the gateways: asks each for its readiness, and repeats no request. */
  async balancer({ gateways }: System) {
    const ready = new Map<string, URL>()
    const asked = new Set<string>()
    let turn = 0
    const proxy = await startProxy('http://gateways', () => {
      const chosen = [...ready.values()][turn++ % ready.size]
      return chosen && { host: chosen.hostname, port: Number(chosen.port) }
    })
    async function probe(url: string): Promise<void> {
      if (asked.has(url)) return
      asked.add(url)
      const isReady = await readinessOf(url).then(
        (told) => told.ready,
        () => false,
      )
      if (isReady) ready.set(url, new URL(url))
      else ready.delete(url)
      asked.delete(url)
    }
    const probing = setInterval(() => {
      for (const { url } of gateways) void probe(url)
    }, PROBE_EVERY_MS)
    this.atEnd(() => {
      clearInterval(probing)
      return proxy.close()
    })
    return {
      url: new URL(proxy.url).origin,
      /** Resolves when it sends requests to all of these gateways. */
      async knows(...awaited: { url: string }[]) {
        await until(() => awaited.every(({ url }) => ready.has(url)), {
          what: 'gateways that the balancer finds ready',
        })
      },
    }
  }

  /** Ends everything that it started. */
  async end(): Promise<void> {
    for (const end of this.#endings) await end()
  }
}

/** A sentence for a process that crashed, or printed a stack or a warning of Node.js. */
function complaint({ name, exit, wasEnded, logs }: Spillway['gateways'][number] | Spillway['workers'][number]) {
  const strays = logs.filter(({ level }) => level === undefined).map(({ msg }) => msg)
  if (exit && !wasEnded) return [`${name} crashed (${exit.signal ?? exit.code}): ${strays.slice(-5).join(' / ')}`]
  return strays.length > 0 ? [`${name} printed: ${strays.slice(0, 5).join(' / ')}`] : []
}

/** The commonest warnings of all processes, each with how often it came. */
function warnings({ gateways, workers }: Spillway): string[] {
  const texts = [...gateways, ...workers].flatMap(({ name, logs }) =>
    logs
      .filter(({ level }) => level !== undefined && level !== 'info')
      .map(({ msg, err }) => `${name}: ${msg}${err === undefined ? '' : ` (${Object(err).message})`}`),
  )
  return texts.length === 0 ? [] : [countBy(texts, 5)]
}

/** How often each came, the commonest first: `30 × 200, 2 × 503`. */
export function countBy(values: readonly (string | number)[], most = Number.POSITIVE_INFINITY): string {
  const times = new Map<string | number, number>()
  for (const value of values) times.set(value, (times.get(value) ?? 0) + 1)
  const commonest = [...times].toSorted(([, a], [, b]) => b - a).slice(0, most)
  return commonest.map(([value, count]) => `${count} × ${value}`).join(', ')
}

/** A quantile of the times of visits, in milliseconds; 0 without visits. */
export function tookAt(visits: readonly Visit[], part: number): number {
  return (
    quantile(
      visits.map(({ tookMs }) => tookMs),
      part,
    ) ?? 0
  )
}

export function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1)
}
