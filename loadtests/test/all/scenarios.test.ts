// Each scenario of the report, by some measurements of its plan: less than a second of load, from the plan to the report.
import assert from 'node:assert/strict'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { afterAll, describe, test } from 'vitest'
import { serverProcesses } from '../../contenders/contender.ts'
import { contenders } from '../../contenders/contenders.ts'
import { Accounts } from '../../load/accounts.ts'
import { renderReport } from '../../report/report.ts'
import { scenarios } from '../../src/run.ts'
import { keptOf, resultsOf, settingOf } from '../results-of.ts'

/** As `contender, variant`: enough to see that each kind of measurement works. */
const named: Readonly<Record<string, readonly string[]>> = {
  'login-100': ['spillway, argon2id'],
  'stress-5000': ['in-process, argon2id', 'spillway, token'],
  ramp: ['in-process, registration', 'spillway, token'],
  spike: ['spillway, argon2id'],
  idle: ['in-process, argon2id'],
  engines: [
    '@node-rs/argon2, argon2id, every processor',
    'crypto.pbkdf2, pbkdf2, alone',
    'crypto.scrypt, scrypt, alone',
  ],
}

test('every scenario is tested', () => {
  assert.deepEqual(scenarios.map(({ name }) => name).sort(), Object.keys(named).sort())
})

const services = await createNamespace()
afterAll(() => services.close())
const setting = settingOf({
  services,
  servers: serverProcesses(services),
  accounts: new Accounts(services.databaseUrl, 50),
  contenders: contenders.filter(({ name }) => ['in-process', 'spillway'].includes(name)),
  durationS: 0.3,
  warmUp: { logins: 20, atMostMs: 1_000 },
  users: 5,
})

// All at once: nobody reads the figures.
describe('measures and is drawn', { concurrent: true }, () => {
  test.each(scenarios)('$name', async (scenario) => {
    const { name } = scenario
    const isNamed = (what: { contender: string; variant: string }) =>
      named[name]?.includes(`${what.contender}, ${what.variant}`)
    const plan = scenario.plan(setting).filter(isNamed)
    assert.equal(plan.length, named[name]?.length)
    const result = await keptOf({ ...scenario, plan: () => plan }, setting)
    for (const { contender, variant, failure, figures } of result.runs) {
      const what = `${contender}, ${variant}`
      assert.equal(failure, undefined, what)
      assert.ok(Object.values(figures).every(Number.isFinite), `${what}: ${JSON.stringify(figures)}`)
      assert.ok((figures.failedPercent ?? 0) < 100, `${what}: everything failed`)
    }
    const report = renderReport(resultsOf([result]))
    assert.match(report, new RegExp(`id="${name}"`))
    assert.match(report, /<svg/)
  })
})
