import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'vitest'
import { startStopwatch } from '../../src/rig/clocks.ts'

test('a stopwatch goes on while this process waits, and stands still while it gets no turn', async () => {
  const elapsedMs = startStopwatch()
  while (elapsedMs() < 200) await sleep(10)
  const before = elapsedMs()
  for (const end = performance.now() + 500; performance.now() < end; );
  await sleep(10)
  assert.ok(elapsedMs() - before < 200, `${elapsedMs() - before} ms`)
})
