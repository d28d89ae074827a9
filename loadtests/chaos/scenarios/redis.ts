// Redis fails in every way it can, as one server, as a master that Sentinels replace, and as a Cluster: defined answers meanwhile, and
// normal again, without a restart of gateways or workers.
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy } from '@spillway/local/rig'
import type { Scenario } from '../scenario.ts'
import { startCluster } from '../stage/cluster.ts'
import { startSentinels } from '../stage/sentinels.ts'
import type { Stage } from '../stage/stage.ts'
import { onRedis, type System } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'
import { cut, redisFaults } from './redis-faults.ts'

/** Two workers and two gateways on a Redis server that breaks and is mended. */
function redisScenario<T extends { url: string; close(): Promise<void> }>(
  name: string,
  promise: string,
  start: (stage: Stage) => Promise<T>,
  inject: (redis: T, system: System) => Promise<void>,
): Scenario {
  const run = onRedis(start, {}, (system, redis) =>
    underFault(system, { perSecond: 50, fault: () => inject(redis, system) }),
  )
  return { name, promise, run }
}

const DEFINED = 'every request has a defined answer, and all is well'

const onOneServer = redisFaults.map(({ name, what, inject }) =>
  redisScenario(`redis-${name}`, `Redis ${what}: ${DEFINED} again.`, (stage) => stage.redis(), inject),
)

const blackhole = redisScenario(
  'redis-blackhole',
  'Connections to Redis go silent without being closed: they are given up and replaced.',
  async (stage) => {
    const redis = await stage.redis()
    const proxy = await startProxy(redis.url)
    const close = async () => {
      await proxy.close()
      await redis.close()
    }
    return { ...proxy, close }
  },
  async (proxy) => {
    proxy.freezeOpen()
    await sleep(5_000)
  },
)

const underSentinel = [
  redisScenario(
    'sentinel-killed',
    `Sentinel: the master is killed, and its replica takes its place: ${DEFINED} again.`,
    startSentinels,
    async ({ first, second, agreedOn }) => {
      await first.kill()
      await agreedOn(second)
    },
  ),
  redisScenario(
    'sentinel-frozen',
    'Sentinel: the master is stopped until its replica has taken its place, and comes back believing to be master: ' +
      `${DEFINED} again.`,
    startSentinels,
    async ({ first, second, agreedOn }) => {
      first.signal('SIGSTOP')
      await Promise.all([agreedOn(second), sleep(6_000)])
      first.signal('SIGCONT')
    },
  ),
]

/** The faults of the one master of a cluster that has our keys. */
const CORE = ['killed', 'paused', 'frozen']

const inCluster = redisFaults
  .filter(({ name }) => CORE.includes(name))
  .map(({ name, what, inject }) =>
    redisScenario(
      `cluster-${name}`,
      `Cluster: the master with our keys ${what}: ${DEFINED} again.`,
      startCluster,
      async (cluster, { queuePrefix }) => inject(await cluster.ownerOf(queuePrefix)),
    ),
  )

const cutEverywhere = redisScenario(
  'cluster-cut',
  'Cluster: every master cuts every connection ten times (CLIENT KILL): the same, also for replies on any of them.',
  startCluster,
  async ({ masters }) => {
    await Promise.all(masters.map(cut.inject))
  },
)

export const redisScenarios = [...onOneServer, blackhole, ...underSentinel, ...inCluster, cutEverywhere]
