// A scenario for less than a second of load, on the services of the test run, from the plan to the report.
import assert from 'node:assert/strict'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { afterAll, describe, test } from 'vitest'
import { serverProcesses } from '../contenders/contender.ts'
import { contenders } from '../contenders/contenders.ts'
import { createAccounts } from '../load/accounts.ts'
import { renderReport } from '../report/report.ts'
import type { Scenario, Setting } from '../scenarios/scenario.ts'
import type { ScenarioResult } from '../src/results.ts'
import { runScenarios } from '../src/run.ts'
import { resultsOf } from './results-of.ts'

/**
 * Tests each scenario by the measurements of its plan that are named, as `contender, variant`: enough to see that each
 * kind of measurement works.
 */
export async function testShortRuns(
  scenarios: readonly Scenario[],
  named: Record<string, readonly string[]>,
): Promise<void> {
  const services = await createNamespace()
  afterAll(() => services.close())
  const setting: Setting = {
    services,
    servers: serverProcesses(services),
    cores: undefined,
    accounts: createAccounts(services.databaseUrl, 50),
    contenders: contenders.filter(({ name }) => ['in-process', 'spillway'].includes(name)),
    short: false,
    durationS: 0.3,
    warmUp: { logins: 20, atMostMs: 1_000 },
    users: 5,
    rate: undefined,
    bareHashMs: { bcrypt: 70, argon2id: 20 },
  }
  // All at once: nobody reads the figures.
  describe('measures and is drawn', { concurrent: true }, () => {
    for (const scenario of scenarios) {
      test(scenario.name, async () => {
        const plan = scenario
          .plan(setting)
          .filter(({ contender, variant }) => named[scenario.name]?.includes(`${contender}, ${variant}`))
        assert.equal(plan.length, named[scenario.name]?.length)
        const result = await measure({ ...scenario, plan: () => plan }, setting)
        for (const { contender, variant, failure, figures } of result.runs) {
          const what = `${contender}, ${variant}`
          assert.equal(failure, undefined, what)
          assert.ok(Object.values(figures).every(Number.isFinite), `${what}: ${JSON.stringify(figures)}`)
          assert.ok((figures.failedPercent ?? 0) < 100, `${what}: everything failed`)
        }
        const report = renderReport(resultsOf([result]))
        assert.match(report, new RegExp(`id="${scenario.name}"`))
        assert.match(report, /<svg/)
      })
    }
  })
}

async function measure(scenario: Scenario, setting: Setting): Promise<ScenarioResult> {
  let kept: ScenarioResult[] = []
  await runScenarios({
    scenarios: [scenario],
    setting,
    repeat: 1,
    say: () => {},
    signal: new AbortController().signal,
    keep: (results) => {
      kept = results
    },
  })
  const [result] = kept
  assert.ok(result)
  return result
}
