// The fast core of `pnpm chaos`: real processes, as there, and as little of it as a test can take. Limits in seconds need the machine, which
// others may share: a scenario that breaks a promise is run once more, with a diagnostic of the first run, and fails if it breaks one again.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openKeeper } from '@spillway/local/processes/keeper'
import { scenarios } from '../chaos/scenarios.ts'
import { openStage } from '../chaos/stage/stage.ts'

const FAST = ['clock', 'flood-limits', 'redis-cut']

const keeper = openKeeper()
const stage = await openStage(keeper, () => undefined)
after(async () => {
  await stage.close()
  await keeper.close()
})

for (const { name, promise, run } of scenarios.filter(({ name }) => FAST.includes(name))) {
  test(`${name}: ${promise}`, async (t) => {
    let findings = await run(stage)
    if (findings.broken.length > 0) {
      t.diagnostic(['broken at first:', ...findings.broken, ...findings.notes].join('\n'))
      findings = await run(stage)
    }
    const { requests, broken, notes } = findings
    assert.ok(requests > 0)
    assert.deepEqual(broken, [], [...broken, ...notes].join('\n'))
  })
}
