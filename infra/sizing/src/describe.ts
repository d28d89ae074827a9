// Describes a size in lines, with the chart's values.
import type { Figures } from './figures.ts'
import type { Demand, Size } from './sizing.ts'
import type { SpikeCost } from './spike.ts'

/** More of them are left out of the list of addresses. */
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

/** The chart's values for several Redis servers, and why. */
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
