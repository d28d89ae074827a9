// Starts Spillway as it is deployed: its own gateways and workers, compiled, each a process, on one Redis under a key
// prefix of their own.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { allOrNone } from '@spillway/local/processes/all-or-none'
import { readGauge } from '@spillway/local/services/prometheus'
import { Redis } from 'ioredis'
import type { Part, Running, StartOptions } from '../contender.ts'
import { type Program, type StartedProgram, startProgram } from '../program.ts'

export interface SpillwayOptions extends Omit<StartOptions, 'algorithm'> {
  gateways: number
  workers: number
  /** For the workers alone; else where the gateways are. */
  workerCores?: readonly number[] | undefined
  /** Hashes a worker computes at a time. */
  concurrency: number
  /** Lets the workers accept the hashes that are doubles. */
  testHashes?: boolean
  /** For the Node of each process. */
  nodeArgs?: readonly string[]
}

export interface SpillwayRunning extends Running {
  /** One for each gateway. */
  urls: readonly string[]
  /** The gateways' ops ports, where the metrics are. */
  gatewayOps: readonly string[]
  workerOps: readonly string[]
}

/** The states of a job that is not done. */
const queued = ['state="waiting"', 'state="deferred"', 'state="active"']

const gateway = fileURLToPath(new URL('../../../api/dist/main.js', import.meta.url))
const worker = fileURLToPath(new URL('../../../worker/dist/main.cjs', import.meta.url))

export async function startSpillway(options: SpillwayOptions): Promise<SpillwayRunning> {
  const { cores, workerCores = cores, services, nodeArgs } = options
  const prefix = `{load-${randomBytes(6).toString('hex')}}`
  const shared = {
    // Development, since workers refuse doubles in production; nothing else depends on it.
    NODE_ENV: 'development',
    REDIS_URL: services.redisUrl,
    QUEUE_PREFIX: prefix,
    SPILLWAY_SEAL_KEYS: `load:${randomBytes(32).toString('base64')}`,
    OPS_HOST: '127.0.0.1',
    OPS_PORT: '0',
    LOG_LEVEL: 'info',
  }
  const workerEnv = {
    ...shared,
    WORKER_CONCURRENCY: String(options.concurrency),
    SPILLWAY_TEST_HASHES: String(options.testHashes ?? false),
  }
  const gatewayEnv = {
    ...shared,
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: services.databaseUrl,
    SPILLWAY_JWT_KEYS: `load:${signingKey()}`,
    // Counted as in production, but never reached: all callers come from one address and log in far more often than people do.
    LIMIT_PER_ADDRESS: '1000000',
    LIMIT_PER_ACCOUNT: '1000000',
    LIMIT_REFRESH_PER_ADDRESS: '1000000',
    LIMIT_REFRESH_PER_SESSION: '1000000',
    LIMIT_REDEEM_PER_ADDRESS: '1000000',
  }
  const programs = await allOrNone([
    ...start(options.gateways, { path: gateway, env: gatewayEnv, cores, nodeArgs }),
    ...start(options.workers, { path: worker, env: workerEnv, cores: workerCores, nodeArgs }),
  ]).catch(async (error) => {
    await forget(services.redisUrl, prefix)
    throw error
  })
  const gateways = programs.slice(0, options.gateways)
  const workers = programs.slice(options.gateways)
  const urls = gateways.map((program) => String(program.ready.url))
  const gatewayOps = gateways.map((program) => String(program.ready.opsUrl))
  const [url] = urls
  if (url === undefined) throw new Error('Spillway needs at least one gateway')
  return {
    url,
    urls,
    gatewayOps,
    workerOps: workers.map((program) => String(program.ready.opsUrl)),
    depth: () => readGauge(gatewayOps[0] ?? '', 'spillway_queue_jobs', queued),
    // The file it serves itself: a stat and a read.
    neighbourPath: '/docs/static/logo.svg',
    parts: [
      ...gateways.map(({ pid, readyMs }): Part => ({ role: 'api', pid, readyMs })),
      ...workers.map(({ pid, readyMs }): Part => ({ role: 'worker', pid, readyMs })),
    ],
    close: async () => {
      // Gateways first: they stop asking, then the workers stop answering.
      await closeAll(gateways)
      await closeAll(workers)
      await forget(services.redisUrl, prefix)
    },
  }
}

function start(count: number, program: Program): Promise<StartedProgram>[] {
  return Array.from({ length: count }, () => startProgram(program))
}

async function closeAll(programs: readonly StartedProgram[]): Promise<void> {
  await Promise.all(programs.map((program) => program.close()))
}

/** Deletes what the queue keeps of finished jobs. */
async function forget(redisUrl: string, prefix: string): Promise<void> {
  const redis = new Redis(redisUrl)
  try {
    for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
      if (Array.isArray(keys) && keys.length > 0) await redis.unlink(...keys)
    }
  } finally {
    redis.disconnect()
  }
}

/** An Ed25519 private key as the gateway reads it: PKCS#8, DER, base64. */
function signingKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519')
  return privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
}
