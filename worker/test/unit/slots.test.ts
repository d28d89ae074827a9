// How many jobs a worker has in hand: more than it has slots only while jobs wait in the queue.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { JobsInHand } from '../../src/consumer/consumer.ts'

test('a worker has a job in hand for each slot, until one has waited and others still do', () => {
  const inHand = new JobsInHand({ slots: 4, batchWidth: () => 5, batchMs: () => 50 })
  assert.equal(inHand.limit(), 4)
  inHand.taken(1_000)
  assert.equal(inHand.limit(), 4)
  inHand.queueRead(1)
  assert.equal(inHand.limit(), 4)
  inHand.taken(99)
  assert.equal(inHand.limit(), 4)
  inHand.taken(100)
  assert.equal(inHand.limit(), 40)
  inHand.queueRead(0)
  inHand.taken(100)
  assert.equal(inHand.limit(), 4)
})

test('while jobs wait, each slot has two batches in hand: one in work and one behind it', () => {
  for (const [width, most] of [
    [1, 8],
    [5, 40],
  ] as const) {
    const inHand = new JobsInHand({ slots: 4, batchWidth: () => width, batchMs: () => 150 })
    inHand.queueRead(1)
    inHand.taken(100)
    assert.equal(inHand.limit(), most)
    inHand.taken(0)
    assert.equal(inHand.limit(), 4)
  }
})

test('the width of a batch is the number of waiting hashes', () => {
  let width = 2
  const inHand = new JobsInHand({ slots: 1, batchWidth: () => width, batchMs: () => 50 })
  inHand.queueRead(1)
  inHand.taken(1_000)
  assert.equal(inHand.limit(), 4)
  width = 5
  assert.equal(inHand.limit(), 10)
})

test('behind a batch that takes long none waits', () => {
  const inHand = new JobsInHand({ slots: 4, batchWidth: () => 5, batchMs: () => 151 })
  inHand.queueRead(1)
  inHand.taken(100)
  assert.equal(inHand.limit(), 20)
})
