// The gateways and workers of one scenario, as deployed: compiled, each a process, on the Redis and PostgreSQL they are
// given. Remembers what went wrong with them, so that no scenario can overlook a crash.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { moveTo } from '../../measure/cores.ts'
import { until } from '../local.ts'
import { type Part, startPart } from './process.ts'
import type { Stage } from './stage.ts'

const gatewayEntry = fileURLToPath(new URL('../../../api/dist/main.js', import.meta.url))
const workerEntry = fileURLToPath(new URL('../../../worker/dist/main.cjs', import.meta.url))

export interface Gateway extends Part {
  url: string
  opsUrl: string
}

export interface WorkerPart extends Part {
  opsUrl: string
}

export interface SystemOptions {
  redisUrl: string
  /** The stage's own, unless a proxy is in between. */
  databaseUrl?: string
  gatewayEnv?: NodeJS.ProcessEnv
  workerEnv?: NodeJS.ProcessEnv
  /** Processors for each kind of process; anywhere without it. */
  gatewayCores?: readonly number[]
  workerCores?: readonly number[]
}

export interface System {
  prefix: string
  gateways: Gateway[]
  workers: WorkerPart[]
  /** Starts a gateway and waits until it is ready; its environment overrides that of all. */
  gateway(env?: NodeJS.ProcessEnv): Promise<Gateway>
  worker(env?: NodeJS.ProcessEnv): Promise<WorkerPart>
  /** Until every gateway knows of this many workers. */
  knowsWorkers(count: number): Promise<void>
  /** One sentence for each process that ended by itself, ended badly, or printed what is no log line. */
  complaints(): string[]
  /** The commonest warnings of all processes, each with how often it came. */
  warnings(): string[]
  close(): Promise<void>
}

/** Environment for both kinds; hashes by doubles are accepted, so that load need not cost processor time. */
export function openSystem({ keeper, postgres }: Stage, options: SystemOptions): System {
  const prefix = `{chaos-${randomBytes(4).toString('hex')}}`
  const { privateKey } = generateKeyPairSync('ed25519')
  const shared = {
    NODE_ENV: 'development',
    REDIS_URL: options.redisUrl,
    QUEUE_PREFIX: prefix,
    SPILLWAY_SEAL_KEYS: `chaos:${randomBytes(32).toString('base64')}`,
    SPILLWAY_TEST_HASHES: 'true',
    OPS_HOST: '127.0.0.1',
    OPS_PORT: '0',
    LOG_LEVEL: 'info',
  }
  const gatewayEnv = {
    ...shared,
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: options.databaseUrl ?? postgres.url,
    SPILLWAY_JWT_KEYS: `chaos:${privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')}`,
    LIMIT_PER_ADDRESS: '0',
    LIMIT_PER_ACCOUNT: '0',
    LIMIT_REFRESH_PER_ADDRESS: '0',
    LIMIT_REFRESH_PER_SESSION: '0',
    LIMIT_REDEEM_PER_ADDRESS: '0',
    ...options.gatewayEnv,
  }
  const workerEnv = { ...shared, WORKER_CONCURRENCY: '4', ...options.workerEnv }
  const gateways: Gateway[] = []
  const workers: WorkerPart[] = []
  const started = { gateways: 0, workers: 0 }
  const ends: string[] = []

  return {
    prefix,
    gateways,
    workers,
    async gateway(env = {}) {
      const name = `gateway ${++started.gateways}`
      const part = await startPart({
        keeper,
        name,
        entry: gatewayEntry,
        env: { ...gatewayEnv, ...env },
        readyMessage: 'gateway listening',
      })
      if (options.gatewayCores !== undefined) moveTo(part.pid, options.gatewayCores)
      const gateway = Object.assign(part, { url: String(part.ready.url), opsUrl: String(part.ready.opsUrl) })
      gateways.push(gateway)
      return gateway
    },
    async worker(env = {}) {
      const name = `worker ${++started.workers}`
      const part = await startPart({
        keeper,
        name,
        entry: workerEntry,
        env: { ...workerEnv, ...env },
        readyMessage: 'worker ready',
      })
      if (options.workerCores !== undefined) moveTo(part.pid, options.workerCores)
      const worker = Object.assign(part, { opsUrl: String(part.ready.opsUrl) })
      workers.push(worker)
      return worker
    },
    async knowsWorkers(count) {
      const running = gateways.filter(({ exit }) => exit === undefined)
      await until(async () => (await Promise.all(running.map(workersKnownTo))).every((known) => known === count), {
        what: `${count} workers known to every gateway`,
      })
    },
    complaints() {
      const all = [...gateways, ...workers]
      const crashes = all
        .filter(({ exit, wasEnded }) => exit !== undefined && !wasEnded)
        .map(
          ({ name, exit, strayLines }) =>
            `${name} crashed (${exit?.signal ?? exit?.code}): ${strayLines.slice(-5).join(' / ')}`,
        )
      const strays = all
        .filter(({ strayLines }) => strayLines.length > 0)
        .map(({ name, strayLines }) => `${name} printed: ${strayLines.slice(0, 5).join(' / ')}`)
      return [...crashes, ...strays, ...ends]
    },
    warnings() {
      const times = new Map<string, number>()
      for (const part of [...gateways, ...workers]) {
        for (const { msg, err } of part.warnings) {
          const text = `${part.name}: ${msg} (${JSON.stringify(err)?.slice(0, 200)})`
          times.set(text, (times.get(text) ?? 0) + 1)
        }
      }
      const commonest = [...times].toSorted(([, a], [, b]) => b - a).slice(0, 8)
      return commonest.map(([text, count]) => `${count} × ${text}`)
    },
    async close() {
      const stop = async (part: Part) => {
        const killed = part.exit?.signal === 'SIGKILL'
        part.signal('SIGCONT')
        const { code, signal } = await part.stop()
        if (!killed && code !== 0) ends.push(`${part.name} did not end well (${signal ?? code})`)
      }
      // Gateways first: they stop asking, then the workers stop answering.
      await Promise.all(gateways.map(stop))
      await Promise.all(workers.map(stop))
    },
  }
}

async function workersKnownTo({ url }: Gateway): Promise<unknown> {
  return JSON.parse(await (await fetch(`${url}/readyz`)).text()).workers
}
