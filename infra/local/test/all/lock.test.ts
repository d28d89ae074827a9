import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'vitest'
import { Keeper } from '../../src/processes/keeper.ts'
import { scratchDir } from '../../src/rig/namespace.ts'
import { isHeld, takeLock } from '../../src/start/lock.ts'

test('a lock has one holder at a time, also in a folder that does not exist yet', async (t) => {
  const file = join(await scratchDir(t), 'new', 'build.lock')
  const keeper = new Keeper()
  t.onTestFinished(() => keeper.close())
  const lock = await takeLock(file, keeper, 0)
  assert.ok(lock)
  assert.equal(await takeLock(file, keeper, 100), undefined)
  assert.ok(isHeld(file))
  lock.close()
  assert.ok(!isHeld(file))
  assert.ok(await takeLock(file, keeper, 0))
})
