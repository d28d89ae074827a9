// How much of a core's hashing is left when it is done for others: a worker's core against the same hash in a bare loop there.
import { type Algorithm, algorithms } from '../contenders/hashing.ts'
import { loginCaller, withCallers } from '../load/closed.ts'
import { bareHash, fastestPackage } from '../measure/bare-hash.ts'
import { generatorCores } from '../measure/cores.ts'
import { ofSpillway } from './measurements.ts'
import type { Measurement, Scenario, Setting } from './scenario.ts'

const BARE_MS = 1_500
/** Callers for the one slot: enough for full batches, and that it never waits for one. */
const CALLERS = 32

export const efficiency: Scenario = {
  name: 'efficiency',
  title: 'One core that does nothing but hash',
  question:
    'How many logins a second does a worker get from its core, of those that a bare loop of the hash does there?',
  durationS: 5,
  settings: () => ({ callers: CALLERS }),
  plan: (setting) => algorithms.flatMap((algorithm) => planOf(setting, algorithm)),
}

function planOf(setting: Setting, algorithm: Algorithm): Measurement[] {
  const workerCores = setting.cores?.slice(0, 1)
  const size = { cores: setting.cores && generatorCores, workerCores, gateways: 1, workers: 1, concurrency: 1 }
  const bare = () => bareHash(fastestPackage[algorithm], BARE_MS, workerCores)
  const options = { size, credential: algorithm, variant: algorithm, placement: 'worker-apart' } as const
  return ofSpillway(setting, options, async ({ urls }) => {
    const before = await bare()
    const loop = { urls, callers: CALLERS, caller: loginCaller(setting.accounts, algorithm) }
    const { tally, seconds } = await withCallers(loop, (countFor) => countFor(setting.durationS))
    const after = await bare()
    const perSecond = tally.counts.ok / seconds
    const barePerSecond = 2_000 / (before.meanMs + after.meanMs)
    return {
      figures: { perSecond, barePerSecond, efficiencyPercent: (100 * perSecond) / barePerSecond },
    }
  })
}
