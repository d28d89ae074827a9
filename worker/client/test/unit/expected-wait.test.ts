// How long a job in its place will wait, by what deferred jobs get of the capacity.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { depth, scene, workers } from '../load-scene.ts'

test('a job in its place waits for those ahead of it, deferred ones by the share that they get', () => {
  const { state, pass } = scene()
  assert.equal(state.expectedWaitMs({ held: 0, deferred: 0 }), Number.POSITIVE_INFINITY)
  state.reading().succeeded(depth, workers)
  assert.equal(state.expectedWaitMs({ held: 5, deferred: 20 }), 2_600)
  assert.equal(state.expectedWaitMs({ held: 0, deferred: 0 }), 200)
  for (let first = 0; first <= 50; first += 5, pass(1_000))
    state.reading().succeeded(depth, workers, { first, last: 0, finished: first })
  assert.equal(Math.round(state.expectedWaitMs({ held: 5, deferred: 20 })), 4_600)
})

test('new requests are foreseen to overtake also just above the limit, and not far above it', () => {
  // Ten jobs a second, and as many come: where they overtake, deferred jobs get two thirds.
  const waitFor60 = (waiting: number) => {
    const { state, pass } = scene()
    for (let n = 0; n <= 20; n += 1, pass(1_000))
      state.reading().succeeded({ ...depth, waiting }, workers, { first: 10 * n, last: 0, finished: 10 * n })
    return Math.round(state.expectedWaitMs({ held: 0, deferred: 60 }))
  }
  assert.equal(waitFor60(5), 9_100)
  assert.equal(waitFor60(19), 9_100)
  assert.equal(waitFor60(20), 6_100)
})

for (const part of ['waiting', 'deferred', 'active'] as const) {
  test(`jobs that come are foreseen to come on, also where they are seen as ${part}`, () => {
    const { state, pass } = scene()
    // Of ten jobs a second, two are new ones: the other eight are left to deferred jobs.
    for (let n = 0; n <= 5; n += 1, pass(1_000))
      state
        .reading()
        .succeeded({ ...depth, [part]: depth[part] + 2 * n }, workers, { first: 10 * n, last: 0, finished: 0 })
    assert.equal(Math.round(state.expectedWaitMs({ held: 0, deferred: 60 })), 7_600)
  })
}
