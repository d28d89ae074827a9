// The fast core of `pnpm chaos`: real processes, as there, and as little of it as a test can take. Its figures need the machine.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { scenarios } from '../chaos/scenarios.ts'
import { openStage } from '../chaos/stage/stage.ts'

const FAST = ['clock', 'flood-limits', 'redis-cut']

const stage = await openStage(() => undefined)
after(() => stage.close())

for (const { name, promise, run } of scenarios.filter(({ name }) => FAST.includes(name))) {
  test(`${name}: ${promise}`, async () => {
    const { requests, broken } = await run(stage)
    assert.ok(requests > 0)
    assert.deepEqual(broken, [])
  })
}
