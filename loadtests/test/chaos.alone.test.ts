// The fast core of `pnpm chaos`: real processes, as there, and as little of it as a test can take. Its figures need the machine.
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
  test(`${name}: ${promise}`, async () => {
    const { requests, broken } = await run(stage)
    assert.ok(requests > 0)
    assert.deepEqual(broken, [])
  })
}
