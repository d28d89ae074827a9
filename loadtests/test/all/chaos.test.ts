// The fast core of `pnpm chaos`: real processes, as there, and as little of it as a test can take.
import assert from 'node:assert/strict'
import { Keeper } from '@spillway/infra/processes/keeper'
import { afterAll, test } from 'vitest'
import { scenarios } from '../../chaos/scenarios.ts'
import { openStage } from '../../chaos/stage/stage.ts'

const FAST = ['clock', 'flood-limits', 'redis-cut']

const keeper = new Keeper()
const stage = await openStage(keeper, () => undefined)
afterAll(async () => {
  await stage.close()
  await keeper.close()
})

for (const { name, promise, run } of scenarios.filter(({ name }) => FAST.includes(name))) {
  test(`${name}: ${promise}`, async () => {
    const { requests, broken, notes } = await run(stage)
    assert.ok(requests > 0)
    assert.deepEqual(broken, [], [...broken, ...notes].join('\n'))
  })
}
