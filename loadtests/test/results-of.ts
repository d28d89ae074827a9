// Runs of scenarios, and results, on a machine that does not matter.
import assert from 'node:assert/strict'
import { Accounts } from '../load/accounts.ts'
import type { Scenario, Setting } from '../scenarios/scenario.ts'
import type { Results, ScenarioResult } from '../src/results.ts'
import { runScenarios } from '../src/run.ts'

/** A setting without servers and contenders, but for what is given. */
export function settingOf(given: Partial<Setting> = {}): Setting {
  return {
    ...{ services: { databaseUrl: '', redisUrl: '' }, servers: [], cores: undefined, contenders: [] },
    accounts: new Accounts(''),
    ...{ short: false, durationS: 1, users: undefined, rate: undefined, warmUp: { logins: 0, atMostMs: 0 } },
    bareHashMs: { bcrypt: 70, argon2id: 20 },
    ...given,
  }
}

/** Runs a scenario. Gives what was kept last. */
export async function keptOf(
  scenario: Scenario,
  setting: Setting,
  signal = new AbortController().signal,
): Promise<ScenarioResult> {
  let kept: ScenarioResult | undefined
  const keep = ([result]: ScenarioResult[]) => {
    kept = structuredClone(result)
  }
  await runScenarios({ scenarios: [scenario], setting, repeat: 1, say: () => {}, signal, keep })
  assert.ok(kept)
  return kept
}

export function resultsOf(scenarios: ScenarioResult[]): Results {
  const machine = { processor: 'a processor', cores: 2, memoryGib: 1, system: 'a system', node: 'v20.19.0' }
  return {
    ...{ format: 2, startedAt: '2000-01-01T00:00:00.000Z', interrupted: false, commit: 'abc1234' },
    machine: { ...machine, engine: 'packages', pinned: false },
    settings: { repeat: 1, argon2idBareMs: 20, bcryptBareMs: 70 },
    scenarios,
  }
}
