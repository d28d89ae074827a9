import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createNamespace, type Namespace } from '@spillway/local/testing'
import { inProcess } from '../contenders/in-process/contender.ts'
import { spillway } from '../contenders/spillway/contender.ts'
import { createAccounts } from '../load/accounts.ts'
import { serverProcesses } from '../measure/server-processes.ts'
import { renderReport } from '../report/report.ts'
import type { Setting } from '../scenarios/scenario.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import type { Results, ScenarioResult } from '../src/results.ts'
import { runScenarios } from '../src/run.ts'

/** Of every plan, enough to see that each kind of measurement in it works. */
const chosen: Record<string, readonly string[]> = {
  'login-100': ['spillway, argon2id', 'in-process, bcrypt'],
  'mixed-100': ['spillway, argon2id'],
  'stress-5000': ['in-process, argon2id', 'spillway, token'],
  ramp: ['in-process, registration', 'spillway, token'],
  spike: ['spillway, argon2id'],
  'scale-out': ['spillway, 2 gateways'],
  idle: ['in-process, argon2id'],
  profile: ['spillway, token'],
  engines: ['@node-rs/argon2, argon2id'],
}

describe('every scenario runs and is drawn', { concurrency: 2 }, () => {
  let services: Namespace
  let setting: Setting

  before(async () => {
    services = await createNamespace()
    setting = {
      services,
      servers: await serverProcesses(services),
      cores: undefined,
      accounts: createAccounts(services.databaseUrl),
      contenders: [inProcess, spillway],
      short: false,
      durationS: 0.5,
      users: 20,
      rate: undefined,
      bareHashMs: { bcrypt: 70, argon2id: 20 },
    }
  })
  after(() => services.close())

  for (const scenario of scenarios) {
    test(scenario.name, async () => {
      const results = await run(scenario.name)
      assert.ok(results.runs.length > 0)
      for (const { contender, variant, failure, figures } of results.runs) {
        assert.equal(failure, undefined, `${contender}, ${variant}`)
        assert.ok(Object.values(figures).every(Number.isFinite), `${contender}, ${variant}: ${JSON.stringify(figures)}`)
        assert.ok((figures.perSecond ?? 1) > 0, `${contender}, ${variant} answered nothing`)
      }
      const report = renderReport({ ...nothingMeasured, scenarios: [results] })
      assert.match(report, new RegExp(`id="${scenario.name}"`))
      assert.match(report, /<svg/)
    })
  }

  async function run(name: string): Promise<ScenarioResult> {
    const scenario = scenarios.find((one) => one.name === name)
    assert.ok(scenario)
    const plan = scenario
      .plan(setting)
      .filter(({ contender, variant }) => chosen[name]?.includes(`${contender}, ${variant}`))
    let kept: ScenarioResult[] = []
    await runScenarios({
      scenarios: [{ ...scenario, plan: () => plan }],
      setting,
      repeat: 1,
      progress: { begin() {}, end() {}, close() {} },
      signal: new AbortController().signal,
      generatorCores: undefined,
      keep: (results) => {
        kept = results
      },
    })
    const [result] = kept
    assert.ok(result)
    return result
  }
})

const nothingMeasured: Results = {
  format: 1,
  startedAt: '2000-01-01T00:00:00.000Z',
  interrupted: false,
  machine: { processor: 'a processor', cores: 2, memoryGib: 1, system: 'a system', node: 'v20.19.0', pinned: false },
  commit: 'abc1234',
  settings: { repeat: 1, argon2idBareMs: 20, bcryptBareMs: 70 },
  scenarios: [],
}
