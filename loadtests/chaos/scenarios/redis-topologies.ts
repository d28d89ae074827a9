// Redis as larger deployments have it: a master that Sentinels replace, and a Cluster. The same is promised as for one server.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scenario } from '../scenario.ts'
import { startCluster } from '../stage/cluster.ts'
import { type Sentinels, startSentinels } from '../stage/sentinels.ts'
import { withRedisFault } from './redis.ts'
import { redisFaults } from './redis-faults.ts'

const FROZEN_MS = 6_000

interface Failover {
  name: string
  what: string
  befall(sentinels: Sentinels): Promise<void>
}

const failovers: readonly Failover[] = [
  {
    name: 'killed',
    what: 'is killed, and its replica takes its place',
    async befall({ first, second, agreedOn }) {
      await first.kill()
      await agreedOn(second)
    },
  },
  {
    name: 'frozen',
    what: 'is stopped until its replica has taken its place, and comes back believing to be master',
    async befall({ first, second, agreedOn }) {
      first.freeze()
      await Promise.all([agreedOn(second), sleep(FROZEN_MS)])
      first.thaw()
    },
  },
]

const underSentinel = failovers.map(
  ({ name, what, befall }): Scenario => ({
    name: `sentinel-${name}`,
    promise: `Sentinel: the master ${what}: every request has a defined answer, and all is well within 5 s.`,
    estimatedS: 24,
    async run(stage) {
      const sentinels = await startSentinels(stage)
      try {
        return await withRedisFault(stage, sentinels.url, () => befall(sentinels))
      } finally {
        await sentinels.close()
      }
    },
  }),
)

/** What the one master of a cluster is tried with that has our keys. */
const CORE = ['killed', 'paused', 'frozen']

const inCluster = redisFaults
  .filter(({ name }) => CORE.includes(name))
  .map(
    ({ name, what, befall }): Scenario => ({
      name: `cluster-${name}`,
      promise: `Cluster: the master with our keys ${what}: every request has a defined answer, and all is well within 5 s.`,
      estimatedS: 22,
      async run(stage) {
        const cluster = await startCluster(stage)
        try {
          return await withRedisFault(stage, cluster.url, async ({ queuePrefix }) =>
            befall(await cluster.ownerOf(queuePrefix)),
          )
        } finally {
          await cluster.close()
        }
      },
    }),
  )

const cutEverywhere: Scenario = {
  name: 'cluster-cut',
  promise:
    'Cluster: every master cuts every connection ten times (CLIENT KILL): the same, also for replies on any of them.',
  estimatedS: 22,
  async run(stage) {
    const cluster = await startCluster(stage)
    const cut = redisFaults.find(({ name }) => name === 'cut')
    try {
      return await withRedisFault(stage, cluster.url, async () => {
        await Promise.all(cluster.masters.map((master) => cut?.befall(master)))
      })
    } finally {
      await cluster.close()
    }
  },
}

export const topologyScenarios: readonly Scenario[] = [...underSentinel, ...inCluster, cutEverywhere]
