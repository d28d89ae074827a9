// Redis fails: as one server, as a master that Sentinels replace, and as a Cluster. Answers are
// defined meanwhile, and normal again without a restart.
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy } from '@spillway/infra/rig/tcp-proxy'
import { type Scenario, underFault } from '../scenario.ts'
import { startCluster, startSentinels } from '../stage/redis.ts'
import { onRedis, onSharedRedis, type RedisServer, type Stage, type System } from '../stage/stage.ts'

// The faults of Redis: each breaks a server and mends it again.

export interface RedisFault {
  name: string
  /** The end of a sentence that starts with Redis's name. */
  what: string
  /** Resolves when it is mended. */
  inject(server: RedisServer): Promise<void>
}

const AWAY_MS = 2_000
const PAUSE_MS = 5_000
const REFUSING_MS = 3_000
const CUTS = 10

export const cut: RedisFault = {
  name: 'cut',
  what: 'cuts every connection ten times (CLIENT KILL)',
  async inject(server) {
    for (let time = 0; time < CUTS; time++) {
      for (const type of ['normal', 'pubsub']) await server.command('CLIENT', 'KILL', 'TYPE', type)
      await sleep(REFUSING_MS / CUTS)
    }
  },
}

export const redisFaults: readonly RedisFault[] = [
  {
    name: 'killed',
    what: 'is killed and restarted from its append-only file',
    async inject(server) {
      await server.kill()
      await sleep(AWAY_MS)
      await server.start()
    },
  },
  {
    name: 'paused',
    what: 'answers nothing for 5 s (CLIENT PAUSE)',
    async inject(server) {
      await server.command('CLIENT', 'PAUSE', PAUSE_MS, 'ALL')
      await sleep(PAUSE_MS)
    },
  },
  {
    name: 'frozen',
    what: 'is stopped for 5 s (SIGSTOP)',
    async inject(server) {
      server.signal('SIGSTOP')
      await sleep(PAUSE_MS)
      server.signal('SIGCONT')
    },
  },
  {
    name: 'read-only',
    what: 'takes no writes for 3 s',
    async inject(server) {
      // As a replica does.
      await server.command('REPLICAOF', '127.0.0.1', 1)
      await sleep(REFUSING_MS)
      await server.command('REPLICAOF', 'NO', 'ONE')
    },
  },
  {
    name: 'full',
    what: 'is full for 3 s (maxmemory, noeviction)',
    async inject(server) {
      await server.command('CONFIG', 'SET', 'maxmemory', 1)
      await sleep(REFUSING_MS)
      await server.command('CONFIG', 'SET', 'maxmemory', 0)
    },
  },
  cut,
]

/** Two workers and two gateways on a Redis server that breaks and is mended. */
function underRedisFault<T>(inject: (redis: T, system: System) => Promise<void>) {
  return (system: System, redis: T) => underFault(system, { perSecond: 30, fault: () => inject(redis, system) })
}

const DEFINED = 'every request has a defined answer, and all is well'

const runOnOne = onSharedRedis((stage) => stage.redis(), {})

const onOneServer = redisFaults.map(
  ({ name, what, inject }): Scenario => ({
    name: `redis-${name}`,
    promise: `Redis ${what}: ${DEFINED} again.`,
    family: 'redis',
    run: runOnOne(underRedisFault(inject)),
  }),
)

async function startRedisBehindProxy(stage: Stage) {
  const redis = await stage.redis()
  const proxy = await startProxy(redis.url)
  const close = async () => {
    await proxy.close()
    await redis.close()
  }
  return { ...proxy, close }
}

const blackhole: Scenario = {
  name: 'redis-blackhole',
  promise: 'Connections to Redis go silent without being closed: they are given up and replaced.',
  run: onRedis(
    startRedisBehindProxy,
    {},
    underRedisFault(async (proxy) => {
      proxy.freezeOpen()
      await sleep(5_000)
    }),
  ),
}

const underSentinel: Scenario[] = [
  {
    name: 'sentinel-killed',
    promise: `Sentinel: the master is killed, and its replica takes its place: ${DEFINED} again.`,
    run: onRedis(
      startSentinels,
      {},
      underRedisFault(async ({ first, second, agreedOn }) => {
        await first.kill()
        await agreedOn(second)
      }),
    ),
  },
  {
    name: 'sentinel-frozen',
    promise:
      'Sentinel: the master is stopped until its replica has taken its place, and comes back believing to be master: ' +
      `${DEFINED} again.`,
    run: onRedis(
      startSentinels,
      {},
      underRedisFault(async ({ first, second, agreedOn }) => {
        first.signal('SIGSTOP')
        await Promise.all([agreedOn(second), sleep(6_000)])
        first.signal('SIGCONT')
      }),
    ),
  },
]

/** The faults of the one master of a cluster that has our keys. */
const CORE = ['killed', 'paused', 'frozen']

const runInCluster = onSharedRedis(startCluster, {})

const inCluster = redisFaults
  .filter(({ name }) => CORE.includes(name))
  .map(
    ({ name, what, inject }): Scenario => ({
      name: `cluster-${name}`,
      promise: `Cluster: the master with our keys ${what}: ${DEFINED} again.`,
      family: 'cluster',
      run: runInCluster(
        underRedisFault(async (cluster, { queuePrefix }) => inject(await cluster.ownerOf(queuePrefix))),
      ),
    }),
  )

const cutEverywhere: Scenario = {
  name: 'cluster-cut',
  promise:
    'Cluster: every master cuts every connection ten times (CLIENT KILL): the same, also for replies on any of them.',
  family: 'cluster',
  run: runInCluster(
    underRedisFault(async ({ masters }) => {
      await Promise.all(masters.map(cut.inject))
    }),
  ),
}

export const redisScenarios: readonly Scenario[] = [
  ...onOneServer,
  blackhole,
  ...underSentinel,
  ...inCluster,
  cutEverywhere,
]
