// When a consumer that closes waits, for its jobs or for its read.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { closeConsumer } from '../../src/process/shutdown.ts'

for (const { status, isIdle, isForced } of [
  { status: 'ready', isIdle: false, isForced: false },
  // Its read may bring a job at this moment.
  { status: 'ready', isIdle: true, isForced: false },
  { status: 'reconnecting', isIdle: false, isForced: false },
  { status: 'reconnecting', isIdle: true, isForced: true },
] as const) {
  const name = `${isIdle ? 'idle' : 'with a job in hand'}, its connection ${status}`
  test(`a consumer that is ${name}, ${isForced ? 'waits for nothing' : 'waits'}`, async () => {
    const closed: (boolean | undefined)[] = []
    await closeConsumer({ close: async (force) => void closed.push(force) }, { redis: { status }, isIdle })
    assert.deepEqual(closed, [isForced])
  })
}
