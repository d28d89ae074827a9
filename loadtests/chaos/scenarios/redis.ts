// Redis fails in every way it can: defined answers meanwhile, and normal again within 5 s, without a restart of ours.
import { setTimeout as sleep } from 'node:timers/promises'
import { startProxy } from '@spillway/local/testing'
import type { Findings } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import type { Stage } from '../stage/stage.ts'
import { openSystem, type System } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'
import { redisFaults } from './redis-faults.ts'

const PER_SECOND = 50
const SILENT_MS = 5_000
/** The hold of 8 s, and some time for what comes before and after it. */
const ANSWER_LIMIT_MS = 9_000

/** Two workers and two gateways on a Redis that something happens to. */
export async function withRedisFault(
  stage: Stage,
  redisUrl: string,
  fault: (system: System) => Promise<void>,
): Promise<Findings> {
  const system = openSystem(stage, { redisUrl })
  try {
    await Promise.all([system.worker(), system.worker(), system.gateway(), system.gateway()])
    await system.knowsWorkers(2)
    await stage.accounts.seed('wait-20')
    return await underFault({
      system,
      visitor: { urls: system.gateways.map(({ url }) => url), accounts: stage.accounts, credential: 'wait-20' },
      perSecond: PER_SECOND,
      fault: () => fault(system),
      answerLimitMs: ANSWER_LIMIT_MS,
    })
  } finally {
    await system.close()
  }
}

const onOneServer = redisFaults.map(
  ({ name, what, befall }): Scenario => ({
    name: `redis-${name}`,
    promise: `Redis ${what}: every request has a defined answer, and all is well again within 5 s.`,
    estimatedS: 17,
    async run(stage) {
      const redis = await stage.redis()
      try {
        return await withRedisFault(stage, redis.url, () => befall(redis))
      } finally {
        await redis.close()
      }
    },
  }),
)

const blackhole: Scenario = {
  name: 'redis-blackhole',
  promise: 'Connections to Redis go silent without being closed: they are given up and replaced within 5 s.',
  estimatedS: 17,
  async run(stage) {
    const redis = await stage.redis()
    const proxy = await startProxy(redis.url)
    try {
      return await withRedisFault(stage, proxy.url, async () => {
        proxy.freezeOpen()
        await sleep(SILENT_MS)
      })
    } finally {
      await proxy.close()
      await redis.close()
    }
  },
}

export const redisScenarios: readonly Scenario[] = [...onOneServer, blackhole]
