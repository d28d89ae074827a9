// How many jobs a worker has in hand: more than it has slots only while jobs wait in the queue.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { createJobsInHand } from '../../src/consumer/jobs-in-hand.ts'

test('a worker has a job in hand for each slot, until one has waited and others still do', () => {
  const { limit, queueRead, taken } = createJobsInHand({ slots: 4, batchWidth: () => 5, batchMs: () => 50 })
  assert.equal(limit(), 4)
  taken(1_000)
  assert.equal(limit(), 4)
  queueRead(1)
  assert.equal(limit(), 4)
  taken(99)
  assert.equal(limit(), 4)
  taken(100)
  assert.equal(limit(), 40)
  queueRead(0)
  taken(100)
  assert.equal(limit(), 4)
})

test('while jobs wait, each slot has two batches in hand: one in work and one behind it', () => {
  for (const [width, most] of [
    [1, 8],
    [5, 40],
  ] as const) {
    const { limit, queueRead, taken } = createJobsInHand({ slots: 4, batchWidth: () => width, batchMs: () => 150 })
    queueRead(1)
    taken(100)
    assert.equal(limit(), most)
    taken(0)
    assert.equal(limit(), 4)
  }
})

test('the width of a batch is the number of waiting hashes', () => {
  let width = 2
  const { limit, queueRead, taken } = createJobsInHand({ slots: 1, batchWidth: () => width, batchMs: () => 50 })
  queueRead(1)
  taken(1_000)
  assert.equal(limit(), 4)
  width = 5
  assert.equal(limit(), 10)
})

test('behind a batch that takes long none waits', () => {
  const { limit, queueRead, taken } = createJobsInHand({ slots: 4, batchWidth: () => 5, batchMs: () => 151 })
  queueRead(1)
  taken(100)
  assert.equal(limit(), 20)
})
