// What of a core's hashing is left when it is done for others: a worker's core against the same hash in a bare loop there.
import { withCallers } from '../load/closed.ts'
import { loginCaller } from '../load/requests.ts'
import { bareHash } from '../measure/bare-hash-run.ts'
import { generatorCores } from '../measure/cores.ts'
import { AROUND_S, hasSpillway, type Scenario } from './scenario.ts'
import { withSpillway } from './warm.ts'

const DURATION_S = 5
const BARE_MS = 1_500
/** Callers for the one slot: enough that it never waits for one. */
const CALLERS = 8

export const efficiency: Scenario = {
  name: 'efficiency',
  title: 'One core that does nothing but hash',
  question:
    'How many logins a second does a worker get from its core, of those that a bare loop of the hash does there?',
  settings: (setting) => ({ callers: CALLERS, seconds: setting.durationS ?? DURATION_S }),
  plan: (setting) => {
    const durationS = setting.durationS ?? DURATION_S
    if (!hasSpillway(setting)) return []
    const hashingCore = setting.cores?.slice(0, 1)
    const size = {
      cores: setting.cores && generatorCores,
      workerCores: hashingCore,
      gateways: 1,
      workers: 1,
      concurrency: 1,
    }
    const measure = () =>
      withSpillway(size, setting, 'argon2id', async (running) => {
        const before = await bareHash('@node-rs/argon2', BARE_MS, hashingCore)
        const loop = { urls: running.urls, connections: CALLERS, caller: loginCaller(setting.accounts, 'argon2id') }
        const { tally, seconds } = await withCallers(loop, (callers) => callers.countFor(durationS))
        const after = await bareHash('@node-rs/argon2', BARE_MS, hashingCore)
        const perSecond = tally.counts.ok / seconds
        const barePerSecond = 2_000 / (before.meanMs + after.meanMs)
        return {
          figures: { perSecond, barePerSecond, efficiencyPercent: (100 * perSecond) / barePerSecond },
          histograms: { answer: tally.latency.encode() },
        }
      })
    const estimatedS = durationS + AROUND_S + (2 * BARE_MS) / 1_000
    return [{ contender: 'spillway', variant: 'argon2id', placement: 'worker-apart', estimatedS, measure }]
  },
}
