// One user on a quiet machine: what a login takes over the bare hash, each measured in turn with the other.
import { createApiClient } from '@spillway/local/rig/api-client'
import type { Running } from '../contenders/contender.ts'
import { bareHash } from '../measure/bare-hash.ts'
import { Latency, outcomeOf } from '../measure/tally.ts'
import { latencyFigures } from './figures.ts'
import { ofContenders } from './measurements.ts'
import { picked, type Scenario, type Setting } from './scenario.ts'

const BARE_MS = 400

export const idle: Scenario = {
  name: 'idle',
  title: 'One user, nobody else',
  question: 'What does one login take over the bare hash when nothing else happens?',
  durationS: 2,
  settings: () => ({}),
  plan: (setting) =>
    ofContenders(setting, { contenders: picked(setting) }, async (running) => {
      const bare = () => bareHash('@node-rs/argon2', BARE_MS, setting.cores)
      const before = await bare()
      const latency = await loginsInTurn(running, setting)
      const after = await bare()
      const bareHashMs = (before.medianMs + after.medianMs) / 2
      return {
        figures: { ...latencyFigures(latency), bareHashMs, overheadMs: latency.percentiles.p50Ms - bareHashMs },
      }
    }),
}

async function loginsInTurn({ url }: Running, { accounts, durationS }: Setting): Promise<Latency> {
  const client = createApiClient(url)
  const latency = new Latency()
  const endMs = performance.now() + durationS * 1_000
  for (let n = 0; performance.now() < endMs; n++) {
    const answer = await client.login(accounts.login('argon2id', n))
    const outcome = outcomeOf(answer)
    if (outcome !== 'ok') throw new Error(`a login on an idle server ended as ${outcome}, status ${answer.status}`)
    latency.record(answer.tookMs)
  }
  client.close()
  return latency
}
