// One user on a quiet machine: what a login takes over the bare hash, each measured in turn with the other.
import { createApiClient } from '@spillway/local/testing/api-client'
import { bareHash } from '../measure/bare-hash-run.ts'
import { Latency } from '../measure/latency.ts'
import { outcomeOf } from '../measure/tally.ts'
import { latencyFigures } from './figures.ts'
import { AROUND_S, picked, type Scenario } from './scenario.ts'
import { withContender } from './warm.ts'

const DURATION_S = 2
const BARE_MS = 400
/** Hashing at hand, and behind a queue. */
const shortSet = ['in-process', 'spillway']

export const idle: Scenario = {
  name: 'idle',
  title: 'One user, nobody else',
  question: 'What does one login take over the bare hash when nothing else happens?',
  settings: (setting) => ({ seconds: setting.durationS ?? DURATION_S }),
  plan: (setting) => {
    const durationS = setting.durationS ?? DURATION_S
    return picked(setting, shortSet).map((contender) => ({
      contender: contender.name,
      variant: 'argon2id',
      placement: 'apart',
      estimatedS: durationS + AROUND_S + 1,
      measure: () =>
        withContender(contender, setting, 'argon2id', async (running) => {
          const before = await bareHash('@node-rs/argon2', BARE_MS, setting.cores)
          const client = createApiClient(running.url)
          const latency = new Latency()
          const endMs = performance.now() + durationS * 1_000
          for (let n = 0; performance.now() < endMs; n++) {
            const sentMs = performance.now()
            const answer = await client.login(setting.accounts.login('argon2id', n))
            const outcome = outcomeOf(answer)
            if (outcome !== 'ok')
              throw new Error(`a login on an idle server ended as ${outcome}, status ${answer.status}`)
            latency.record(performance.now() - sentMs)
          }
          client.close()
          const after = await bareHash('@node-rs/argon2', BARE_MS, setting.cores)
          const bareHashMs = (before.medianMs + after.medianMs) / 2
          return {
            figures: { ...latencyFigures(latency), bareHashMs, overheadMs: latency.percentiles.p50Ms - bareHashMs },
            histograms: { answer: latency.encode() },
          }
        }),
    }))
  },
}
