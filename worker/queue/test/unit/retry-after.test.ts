// Retry-After of refused requests: what a flood leaves behind.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { RetryAfter } from '../../src/wait/admission.ts'

function createRetryAfter(now: () => number): (perSecond: number) => number {
  const retryAfter = new RetryAfter(now)
  return (perSecond) => retryAfter.seconds(perSecond)
}

test('each refusal is told to come back after those before it, and nobody later than in a minute', () => {
  const retryAfterS = createRetryAfter(() => 0)
  const told = Array.from({ length: 1_000 }, () => retryAfterS(10))
  assert.equal(told[0], 2)
  const inOrder = told.toSorted((a, b) => a - b)
  assert.deepEqual(told, inOrder)
  assert.equal(told.at(-1), 60)
  assert.equal(retryAfterS(0), 60)
})

test('a flood is forgotten with the last that was told to come back', () => {
  let nowMs = 0
  const retryAfterS = createRetryAfter(() => nowMs)
  for (; nowMs < 60_000; nowMs += 0.2) retryAfterS(1_000)
  nowMs += 61_000
  assert.equal(retryAfterS(1_000), createRetryAfter(() => nowMs)(1_000))
})

test('a moment without workers forgets none of those who were told to come back', () => {
  const [retryAfterS, undisturbed] = [createRetryAfter(() => 0), createRetryAfter(() => 0)]
  for (let n = 0; n < 100; n += 1) assert.equal(retryAfterS(10), undisturbed(10))
  assert.equal(retryAfterS(0), 60)
  assert.equal(retryAfterS(10), undisturbed(10))
})
