// The steps of a shutdown, which go on after failures.
import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { Shutdown } from '@spillway/common/shutdown'
import { closeConsumer } from '@spillway/queue/bullmq'
import { test } from 'vitest'

test('a step that rejects, throws or never ends is logged, and all the others run', async () => {
  const told: unknown[] = []
  const closing = new Shutdown('gateway', { warn: (fields: unknown) => told.push(fields) })
  const taken: string[] = []
  await closing.step('reject', 60_000, () => Promise.reject(new Error('first')))
  await closing.step('go well', 60_000, async () => taken.push('one'))
  await closing.step('throw', 60_000, () => {
    throw new Error('second')
  })
  await closing.step('hang', 5, () => new Promise(() => undefined))
  await closing.step('go well too', 60_000, () => taken.push('two'))
  assert.deepEqual(taken, ['one', 'two'])
  assert.deepEqual(
    told.map((fields) => (typeof fields === 'object' && fields !== null && 'step' in fields ? fields.step : undefined)),
    ['reject', 'throw', 'hang'],
  )
  const failure = closing.failure()
  assert.equal(failure?.message, 'could not reject, throw, hang')
  assert.deepEqual(failure.cause, new Error('first'))
})

test('the time in which the machine stands still is not the time of a step', async () => {
  const closing = new Shutdown('worker', { warn: () => assert.fail() })
  const standStill = () => {
    for (const endMs = performance.now() + 1_200; performance.now() < endMs; );
  }
  await closing.step('read', 1_000, async () => {
    setImmediate(standStill)
    for (let n = 0; n < 3; n += 1) await stat(import.meta.dirname)
  })
  assert.equal(closing.failure(), undefined)
})

test('steps that all go well leave no failure', async () => {
  const closing = new Shutdown('worker', { warn: () => assert.fail() })
  await closing.step('give nothing back', 60_000, () => undefined)
  assert.equal(closing.failure(), undefined)
})

// When a consumer that closes waits, for its jobs or for its read.

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
