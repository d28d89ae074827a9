// The results of a run with these scenarios, on a machine that does not matter.
import type { Results, ScenarioResult } from '../src/results.ts'

export function resultsOf(scenarios: ScenarioResult[]): Results {
  return {
    format: 2,
    startedAt: '2000-01-01T00:00:00.000Z',
    interrupted: false,
    machine: {
      processor: 'a processor',
      cores: 2,
      memoryGib: 1,
      system: 'a system',
      node: 'v20.19.0',
      engine: 'packages',
      pinned: false,
    },
    commit: 'abc1234',
    settings: { repeat: 1, argon2idBareMs: 20, bcryptBareMs: 70 },
    scenarios,
  }
}
