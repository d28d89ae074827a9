// The price of an installation, from the price of a core for an hour: logins by algorithm and engine, the minimum, the spike, and the hash
// cost for the same money.
import type { HashPolicy } from '@spillway/client/protocol/policy'
import type { Figures } from './figures.ts'
import { DEFAULT_POLICY, openHashMeter } from './measure/hash.ts'
import { type Demand, type Size, workersFor } from './sizing.ts'

export interface Pricing {
  perCoreHour: number
  spikesPerMonth: number
}

/** What a hash takes of a busy core, by the engine that makes it. */
export interface MeasuredHash {
  policy: HashPolicy
  engine: string
  ms: number
}

/** The least that OWASP's Password Storage Cheat Sheet names. Each cost of bcrypt takes twice as long as the one below. */
const policies: readonly HashPolicy[] = [DEFAULT_POLICY, { algorithm: 'bcrypt', cost: 10 }]

const HOURS_A_MONTH = 730
/** Workers that a spike leaves behind, by the chart: 300 s for all, then half as many each minute, which is as long as a minute for all. */
const SCALE_DOWN_S = 360
const MS_AN_HOUR = 3_600_000

/** Measures each policy with the native engine, if it has been built, and with the packages, on this machine: some ten seconds. */
export async function measureHashes(): Promise<MeasuredHash[]> {
  const measured: MeasuredHash[] = []
  for (const native of [true, false]) {
    const meter = await openHashMeter({ native })
    try {
      for (const policy of policies) {
        const engine = meter.engine(policy.algorithm)
        if (measured.some((one) => one.policy === policy && one.engine === engine)) continue
        measured.push({ policy, engine, ms: (await meter.measure(policy)).fullMs })
      }
    } finally {
      meter.close()
    }
  }
  return measured
}

export type Price = ReturnType<typeof priceOf>

export function priceOf(demand: Demand, size: Size, figures: Figures, { perCoreHour, spikesPerMonth }: Pricing) {
  const { gateway, worker, redis, postgres } = figures.costMs
  const beside = gateway + worker + redis + postgres
  const aMonth = (cores: number): number => cores * HOURS_A_MONTH * perCoreHour
  const addedCores = (size.spike.workers - size.workers) * demand.coresPerWorker
  const { overAfterS } = size.spike.scaled
  const spikeHours = ((Number.isFinite(overAfterS) ? overAfterS : demand.spikeS) + SCALE_DOWN_S) / 3_600
  const aSpike = addedCores * spikeHours * perCoreHour
  const minimumCores = size.slots + size.gateways
  const storeCores = size.redisServers + Math.ceil(size.postgresCores)
  return {
    /** Processor time alone: what idles costs too. */
    thousandLogins: (hashMs: number): number => (1_000 * (hashMs + beside) * perCoreHour) / MS_AN_HOUR,
    minimumCores,
    minimumMonth: aMonth(minimumCores),
    storeCores,
    storeMonth: aMonth(storeCores),
    redisServers: size.redisServers,
    /** A core for each of them, in `storeMonth` too. */
    redisMonth: aMonth(size.redisServers),
    aSpike,
    spikesMonth: aSpike * spikesPerMonth,
    preScaledMonth: aMonth(addedCores),
    affordableHashMs: longestHashMs(demand, size, figures),
  }
}

/** The longest hash with which no worker is added, on an ordinary day and in a spike. */
function longestHashMs(demand: Demand, size: Size, { turnaroundMs }: Figures): number {
  const isAffordable = (hashMs: number): boolean =>
    workersFor({ ...demand, hashMs }, demand.loginsPerSecond, turnaroundMs) <= size.workers &&
    workersFor({ ...demand, hashMs }, demand.loginsPerSecond * demand.spike, turnaroundMs) <= size.spike.workers
  let [low, high] = [demand.hashMs, demand.hashMs * 2]
  while (isAffordable(high)) high *= 2
  while (high - low > low / 1_000) {
    const middle = (low + high) / 2
    if (isAffordable(middle)) low = middle
    else high = middle
  }
  return low
}

/** The policy that a faster engine affords in the time of a slower one; undefined where there is no higher one. */
export function raised(policy: HashPolicy, ratio: number): HashPolicy | undefined {
  if (policy.algorithm === 'bcrypt') {
    const steps = Math.floor(Math.log2(ratio))
    return steps < 1 ? undefined : { algorithm: 'bcrypt', cost: policy.cost + steps }
  }
  const memoryKib = Math.floor((policy.memoryKib * ratio) / 1_024) * 1_024
  return memoryKib <= policy.memoryKib ? undefined : { ...policy, memoryKib }
}
