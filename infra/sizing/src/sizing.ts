// The size of an installation, from the demand and the measured cost of a login.
import { GatewayConfig } from '@spillway/api/config'
import { UserError } from '@spillway/infra/processes/command-line'
import type { Figures } from './figures.ts'
import { CHART_LIMITS, type SpikeCost, type Station, spikeCost } from './spike.ts'

export interface Demand {
  /** Logins a second at the busiest time of an ordinary day. */
  loginsPerSecond: number
  /** That 99 of 100 logins stay below. */
  p99WaitMs: number
  /** On a core of the workers. */
  hashMs: number
  /** A sentence. */
  hashSource: string
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
/** The largest PostgreSQL server that one can rent, and what one cluster of workers may have. */
const POSTGRES_CORES_MOST = 192
const WORKER_CORES_MOST = 100_000
/** Finished jobs that stay in Redis at most. */
const KEPT_FINISHED = 1_000
const EMPTY_REDIS_MIB = 8

export type Size = ReturnType<typeof size>

/** Throws a UserError for a load that no single installation carries. */
export function size(demand: Demand, { costMs, turnaroundMs, jobBytes }: Figures) {
  const { loginsPerSecond, p99WaitMs, coresPerWorker, spikeS, scaleS } = demand
  const slotMs = demand.hashMs + turnaroundMs
  refuseImpossible(demand, { slotMs, postgresMs: costMs.postgres })
  const workersFor = (perSecond: number) => Math.ceil(slotsFor({ perSecond, slotMs }, p99WaitMs, 0.99) / coresPerWorker)
  const workers = workersFor(loginsPerSecond)
  const station = { perSecond: loginsPerSecond, slotMs, slots: workers * coresPerWorker }

  const spikePerSecond = loginsPerSecond * demand.spike
  const spikeWorkers = workersFor(spikePerSecond)
  const laterSlots = spikeWorkers * coresPerWorker
  const spike = { ...station, spikePerSecond, spikeS, laterSlots, scaleS, limits: CHART_LIMITS }
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
    redisMib: EMPTY_REDIS_MIB + ((CHART_LIMITS.maxOutstanding + KEPT_FINISHED) * jobBytes) / 1_024 / 1_024,
    postgresCores: (spikePerSecond * costMs.postgres) / 1_000 / LOAD_LIMIT,
    connections: gateways * POOL_SIZE,
    spike: {
      slots: laterSlots,
      workers: spikeWorkers,
      scaled: spikeCost(spike),
      preScaled: spikeCost({ ...spike, slots: laterSlots, scaleS: 0 }),
    },
  }
}

function refuseImpossible(
  { loginsPerSecond, spike, coresPerWorker }: Demand,
  { slotMs, postgresMs }: { slotMs: number; postgresMs: number },
): void {
  const perSecond = loginsPerSecond * Math.max(1, spike)
  const cores = { workers: (perSecond * slotMs) / 1_000, postgres: (perSecond * postgresMs) / 1_000 / LOAD_LIMIT }
  const load = `${perSecond.toLocaleString('en')} logins a second in the spike`
  const split = 'lower --logins-per-second or --spike, or divide the accounts among several installations.'
  if (cores.postgres > POSTGRES_CORES_MOST)
    throw new UserError(
      `${load} take ${Math.ceil(cores.postgres).toLocaleString('en')} cores of one PostgreSQL server, more than ${POSTGRES_CORES_MOST}: ${split}`,
    )
  if (Math.max(cores.workers, coresPerWorker) > WORKER_CORES_MOST)
    throw new UserError(`${load} take more than ${WORKER_CORES_MOST.toLocaleString('en')} cores of workers: ${split}`)
}

// How long a login waits for a slot: M/D/c. Logins come at random (Poisson), a hash always takes
// the same time (D), and c slots share one queue. The tail of the waits falls off exponentially.
// With hashes of one length every slot takes each c-th login (E_c/D/1), whose waits decay with the
// root of (λ / (λ + θ))^c · e^(θD) = 1. The tail starts at Erlang's C, the chance to wait at all if
// hashes were of random length. Both together are within a tenth of the simulated 99th percentile.

/** The share of the slots that is busy; from 1 on the queue grows without end. */
export function utilization({ perSecond, slotMs, slots }: Station): number {
  return (perSecond * slotMs) / 1_000 / slots
}

/** Erlang's C: the chance that a login finds all slots busy. */
export function chanceOfWaiting(station: Station): number {
  const { perSecond, slotMs, slots } = station
  const busy = utilization(station)
  if (busy >= 1) return 1
  const offered = (perSecond * slotMs) / 1_000
  if (offered === 0) return 0
  // Erlang's B by its recursion, which neither overflows nor loses digits.
  let blocked = 1
  for (let slot = 1; slot <= slots; slot += 1) blocked = (offered * blocked) / (slot + offered * blocked)
  return blocked / (1 - busy * (1 - blocked))
}

/** Of the tail of the waits. */
function decayPerMs({ perSecond, slotMs, slots }: Station): number {
  const rate = perSecond / 1_000
  const excess = (theta: number): number => slots * Math.log1p(theta / rate) - theta * slotMs
  // Positive up to the root and negative beyond it.
  let low = 0
  let high = rate
  while (excess(high) > 0) high *= 2
  for (let step = 0; step < 80; step += 1) {
    const middle = (low + high) / 2
    if (excess(middle) > 0) low = middle
    else high = middle
  }
  return low
}

/** What this share of the logins (0.99) stays below; Infinity when the queue grows without end. */
export function waitQuantileMs(station: Station, quantile: number): number {
  if (utilization(station) >= 1) return Number.POSITIVE_INFINITY
  const waiting = chanceOfWaiting(station)
  if (waiting <= 1 - quantile) return 0
  return Math.log(waiting / (1 - quantile)) / decayPerMs(station)
}

export function slotsFor(demand: Omit<Station, 'slots'>, waitMs: number, quantile: number): number {
  let slots = Math.floor((demand.perSecond * demand.slotMs) / 1_000) + 1
  while (waitQuantileMs({ ...demand, slots }, quantile) > waitMs) slots += 1
  return slots
}

// The size in lines, with the chart's values.

const NAMED_REDIS = 4

export function describe(demand: Demand, size: Size, figures: Figures): string {
  const { loginsPerSecond, hashMs, coresPerWorker, spike, spikeS, scaleS } = demand
  const spikePerSecond = loginsPerSecond * spike
  const lines = [
    `${loginsPerSecond} logins a second, ${hashMs.toFixed(1)} ms a hash, ${cores(coresPerWorker)} a worker`,
    demand.hashSource,
    '',
    `workers      ${size.workers} (${cores(size.slots)}, ${percent(size.utilization)} busy; 99 of 100 logins wait ${time(size.p99WaitMs)} at most)`,
    `gateways     ${size.gateways} of 1 core (${figures.costMs.gateway.toFixed(2)} ms a login, sized for the spike)`,
    `Redis        ${redis(size)}`,
    `PostgreSQL   ${size.postgresCores.toFixed(1)} cores in the spike, ${size.connections} connections`,
    '',
    `A spike of ${spike} times that, ${spikePerSecond} a second, for ${spikeS} s:`,
    `  as scaled by the queue (${scaleS} s until ${size.spike.workers} workers hash): ${spikeSentence(size.spike.scaled)}`,
    `  scaled beforehand (${size.spike.workers} workers, ${cores(size.spike.slots)}): ${spikeSentence(size.spike.preScaled)}`,
    '',
    `autoscaling.minReplicas: ${size.workers}`,
    `autoscaling.maxReplicas: ${size.spike.workers}`,
    `worker.cores: ${coresPerWorker}`,
    `gateway.replicas: ${size.gateways}`,
  ]
  if (size.redisServers > 1) lines.push(...several(size))
  return lines.join('\n')
}

function redis({ redisServers, redisShare, redisMib }: Size): string {
  const [each, servers] = redisServers === 1 ? ['', ''] : [' each', `${redisServers} side by side, `]
  return `${servers}${percent(redisShare)} of a core${each} in the spike, ${Math.ceil(redisMib)} MiB${each} with the queue full`
}

function several({ redisServers, redisEndPerSecond }: Size): string[] {
  const address = (n: number) => `redis-${n}:6379`
  const first = Array.from({ length: Math.min(redisServers, NAMED_REDIS) }, (_, n) => address(n + 1))
  const addresses = redisServers > NAMED_REDIS ? [...first, '...', address(redisServers)] : first
  return [
    'redis.mode: several',
    `redis.addresses: [${addresses.join(', ')}]`,
    '',
    `One Redis server carries about ${Math.floor(redisEndPerSecond)} logins a second: this spike needs ${redisServers} side by side.`,
    `With ${redisServers + 1} servers, the loss of one costs no login.`,
  ]
}

function spikeSentence({ deepest, longestWaitS, ticketed, refused, overAfterS }: SpikeCost): string {
  if (deepest < 1) return 'nobody waits longer than usual'
  const over = Number.isFinite(overAfterS) ? `over after ${Math.round(overAfterS)} s` : 'and never over'
  const told = [
    `${Math.round(deepest)} jobs deep`,
    `waits of up to ${time(longestWaitS * 1_000)}`,
    ...(ticketed < 1 ? [] : [`${Math.round(ticketed)} tickets`]),
    ...(refused < 1 ? [] : [`${Math.round(refused)} times "come back later" (503)`]),
  ]
  return `${told.join(', ')}; ${over}`
}

function cores(count: number): string {
  return `${count} core${count === 1 ? '' : 's'}`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`
}

function time(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
