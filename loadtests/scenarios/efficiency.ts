// What of a core's hashing is left when it is done for others: a worker's core against the same hash in a bare loop there.
import { startSpillway } from '../contenders/spillway/start.ts'
import { closedLoop } from '../load/closed.ts'
import { loginCaller } from '../load/requests.ts'
import { bareHash } from '../measure/bare-hash-run.ts'
import { generatorCores } from '../measure/cores.ts'
import { AROUND_S, type Scenario } from './scenario.ts'

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
    if (!setting.contenders.some(({ name }) => name === 'spillway')) return []
    const measure = async () => {
      const running = await startSpillway({
        services: setting.services,
        cores: setting.cores && generatorCores,
        workerCores: setting.cores?.slice(0, 1),
        gateways: 1,
        workers: 1,
        concurrency: 1,
      })
      try {
        await setting.accounts.warmUp(running, 'argon2id', setting.warmUpMs.hash)
        const before = await bareHash('@node-rs/argon2', BARE_MS, setting.cores)
        const caller = loginCaller(setting.accounts, 'argon2id')
        const { tally, seconds } = await closedLoop({ urls: [running.url], connections: CALLERS, durationS, caller })
        const after = await bareHash('@node-rs/argon2', BARE_MS, setting.cores)
        const perSecond = tally.counts.ok / seconds
        const barePerSecond = 2_000 / (before.meanMs + after.meanMs)
        return {
          figures: { perSecond, barePerSecond, efficiencyPercent: (100 * perSecond) / barePerSecond },
          histograms: { answer: tally.latency.encode() },
        }
      } finally {
        await running.close()
      }
    }
    const estimatedS = durationS + AROUND_S + (2 * BARE_MS) / 1_000
    return [{ contender: 'spillway', variant: 'argon2id', placement: 'worker-apart', estimatedS, measure }]
  },
}
