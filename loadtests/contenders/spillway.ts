// Starts Spillway in the size and on the cores that a measurement wants.
import { type Member, openSpillway } from '@spillway/infra/rig'
import { readMetric } from '@spillway/infra/rig/api-client'
import { deleteKeys } from '@spillway/infra/rig/namespace'
import { limitsOf } from '@spillway/infra/rig/spillway'
import { allOrNone } from '@spillway/infra/services/services'
import type { Part, StartOptions } from './contender.ts'

export interface SpillwayOptions extends Omit<StartOptions, 'algorithm'> {
  gateways: number
  workers: number
  /** For the workers alone; else where the gateways are. */
  workerCores?: readonly number[] | undefined
  /** Hashes a worker computes at a time. */
  concurrency: number
  /** Lets the workers accept the hashes that are doubles. */
  testHashes?: boolean
}

/** The states of a job that is not done. */
const queued = ['state="waiting"', 'state="deferred"', 'state="active"']

/** Counted as in production, but never reached: all callers come from one address and log in far more often than people do. */
const UNREACHED = 1_000_000

export type SpillwayRunning = Awaited<ReturnType<typeof startSpillway>>

export async function startSpillway(options: SpillwayOptions) {
  const { cores, workerCores = cores, services } = options
  const spillway = openSpillway({
    databaseUrl: services.databaseUrl,
    redisUrl: services.redisUrl,
    gatewayEnv: limitsOf(UNREACHED),
    workerEnv: {
      // The engine to measure may be chosen by the environment.
      HASH_ENGINE: process.env.HASH_ENGINE,
      WORKER_CONCURRENCY: String(options.concurrency),
      SPILLWAY_TEST_HASHES: String(options.testHashes ?? false),
    },
    keepOnly: 'nothing',
  })
  const close = async () => {
    await spillway.close()
    await deleteKeys(services.redisUrl, spillway.queuePrefix)
  }
  await allOrNone([
    ...Array.from({ length: options.gateways }, () => spillway.gateway({ cores })),
    ...Array.from({ length: options.workers }, () => spillway.worker({ cores: workerCores })),
  ]).catch(async (error) => {
    await close()
    throw error
  })
  const { gateways, workers } = spillway
  const [first] = gateways
  if (first === undefined) throw new Error('Spillway needs at least one gateway')
  return {
    url: first.url,
    /** One for each gateway. */
    urls: gateways.map(({ url }) => url),
    /** The gateways' ops ports, where the metrics are. */
    gatewayOps: gateways.map(({ opsUrl }) => opsUrl),
    workerOps: workers.map(({ opsUrl }) => opsUrl),
    depth: () => readMetric(first.opsUrl, 'spillway_queue_jobs', ...queued),
    // The file it serves itself: a stat and a read.
    neighbourPath: '/docs/static/logo.svg',
    parts: [...gateways.map(partOf('api')), ...workers.map(partOf('worker'))],
    close,
  }
}

/**
 * Several of Spillway side by side that share nothing but the machine and its servers. The requests go to all of them, and their
 * processes are measured together; the depth is the first one's.
 */
export async function startSystems(count: number, options: SpillwayOptions): Promise<SpillwayRunning> {
  const systems = await allOrNone(Array.from({ length: count }, () => startSpillway(options)))
  const [first] = systems
  if (first === undefined) throw new Error('there has to be one system at least')
  return {
    ...first,
    urls: systems.flatMap(({ urls }) => urls),
    gatewayOps: systems.flatMap(({ gatewayOps }) => gatewayOps),
    workerOps: systems.flatMap(({ workerOps }) => workerOps),
    parts: systems.flatMap(({ parts }) => parts),
    close: async () => {
      await Promise.all(systems.map((system) => system.close()))
    },
  }
}

const partOf =
  (role: string) =>
  ({ pid, readyMs }: Member): Part => ({ role, pid, readyMs })
