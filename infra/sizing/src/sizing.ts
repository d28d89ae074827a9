// The size of an installation, from the demand and the measured cost of a login.
import { GatewayConfig } from '@spillway/api/config'
import type { Figures } from './figures.ts'
import { slotsFor, utilization, waitQuantileMs } from './queue-model.ts'
import { DEFAULT_LIMITS, spikeCost } from './spike.ts'

export interface Demand {
  /** Logins a second at the busiest time of an ordinary day. */
  loginsPerSecond: number
  /** The wait that 99 of 100 logins stay below, in milliseconds. */
  p99WaitMs: number
  /** The time of a hash on a core of the workers, in milliseconds. */
  hashMs: number
  coresPerWorker: number
  /** How many times as many logins a spike brings, and for how long. */
  spike: number
  spikeS: number
  /** From the start of a spike until the workers it asks for hash. */
  scaleS: number
}

/** The highest load of a single-threaded process, such as Redis. */
const LOAD_LIMIT = 0.7
/** Two, so that one may fail. */
const MIN_GATEWAYS = 2
const POOL_SIZE = GatewayConfig.properties.DATABASE_POOL_SIZE.default
/** Finished jobs that stay in Redis at most. */
const KEPT_FINISHED = 1_000
const EMPTY_REDIS_MIB = 8

/** Whole workers for so many logins a second. */
export function workersFor(
  { hashMs, coresPerWorker, p99WaitMs }: Pick<Demand, 'hashMs' | 'coresPerWorker' | 'p99WaitMs'>,
  perSecond: number,
  turnaroundMs: number,
): number {
  return Math.ceil(slotsFor({ perSecond, slotMs: hashMs + turnaroundMs }, p99WaitMs, 0.99) / coresPerWorker)
}

export type Size = ReturnType<typeof size>

export function size(demand: Demand, { costMs, turnaroundMs, jobBytes }: Figures) {
  const { loginsPerSecond, hashMs, coresPerWorker, spikeS, scaleS } = demand
  const slotMs = hashMs + turnaroundMs
  const workers = workersFor(demand, loginsPerSecond, turnaroundMs)
  const station = { perSecond: loginsPerSecond, slotMs, slots: workers * coresPerWorker }

  const spikePerSecond = loginsPerSecond * demand.spike
  const spikeWorkers = workersFor(demand, spikePerSecond, turnaroundMs)
  const laterSlots = spikeWorkers * coresPerWorker
  const spike = {
    perSecond: loginsPerSecond,
    spikePerSecond,
    spikeS,
    slotMs,
    laterSlots,
    scaleS,
    limits: DEFAULT_LIMITS,
  }
  const redisEndPerSecond = (LOAD_LIMIT * 1_000) / costMs.redis
  const redisServers = Math.max(1, Math.ceil(spikePerSecond / redisEndPerSecond))
  const gateways = Math.max(MIN_GATEWAYS, Math.ceil((spikePerSecond * costMs.gateway) / 1_000 / LOAD_LIMIT))
  return {
    slots: station.slots,
    workers,
    utilization: utilization(station),
    p99WaitMs: waitQuantileMs(station, 0.99),
    gateways,
    /** Side by side, each with the queue. */
    redisServers,
    /** Of a core, of each of them. */
    redisShare: (spikePerSecond * costMs.redis) / 1_000 / redisServers,
    redisEndPerSecond,
    /** Of each: where the others are lost, it has the queue alone. */
    redisMib: EMPTY_REDIS_MIB + ((DEFAULT_LIMITS.maxOutstanding + KEPT_FINISHED) * jobBytes) / 1_024 / 1_024,
    postgresCores: (spikePerSecond * costMs.postgres) / 1_000 / LOAD_LIMIT,
    connections: gateways * POOL_SIZE,
    spike: {
      slots: laterSlots,
      workers: spikeWorkers,
      scaled: spikeCost({ ...spike, slots: station.slots }),
      preScaled: spikeCost({ ...spike, slots: laterSlots, scaleS: 0 }),
    },
  }
}
