// How many jobs a worker has in hand: more than it has slots only while jobs wait in the queue.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { JobsInHand, SlotShare } from '../../src/consumer/slots.ts'

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

// How queues share the slots of a worker.

function shares(slots: number, queues: number): SlotShare[] {
  const jobsInHand = { limit: () => slots, queueRead: () => undefined, taken: () => undefined }
  return SlotShare.among(queues, jobsInHand)
}
const limits = (all: SlotShare[]): number[] => all.map((share) => share.limit())
const take = (share: SlotShare | undefined, jobs: number): void => {
  for (let n = 0; n < jobs; n += 1) share?.started()
}

test('one queue has all slots, whatever waits', () => {
  const [only] = shares(8, 1)
  assert.equal(only?.limit(), 8)
  only?.queueRead(100)
  take(only, 8)
  assert.equal(only?.limit(), 8)
})

test('a queue may have what the others leave, and always one', () => {
  const all = shares(8, 3)
  assert.deepEqual(limits(all), [8, 8, 8])
  take(all[0], 5)
  assert.deepEqual(limits(all), [8, 3, 3])
  take(all[1], 3)
  assert.deepEqual(limits(all), [5, 3, 1])
  all[0]?.finished()
  all[0]?.finished()
  assert.deepEqual(limits(all), [5, 5, 2])
})

test('while jobs wait in several, each has its share of all slots, however many the others have taken', () => {
  const all = shares(8, 2)
  all[0]?.queueRead(300)
  take(all[0], 8)
  assert.deepEqual(limits(all), [8, 1])
  all[1]?.queueRead(100)
  assert.deepEqual(limits(all), [8, 2])
  take(all[1], 2)
  // Of the first, two are not followed by others when they end.
  assert.deepEqual(limits(all), [6, 2])
})

test('a share that is not taken is left to the others at once', () => {
  const all = shares(8, 2)
  all[0]?.queueRead(10)
  all[1]?.queueRead(10)
  take(all[0], 4)
  assert.deepEqual(limits(all), [8, 4])
})

test('who depends on limits is told of each change', () => {
  const [first, second] = shares(2, 2)
  let told = 0
  second?.onChange(() => {
    told += 1
  })
  first?.started()
  first?.taken(0)
  first?.finished()
  first?.queueRead(1)
  assert.equal(told, 4)
})

test('how many are in hand is told what waits in all queues together, and how long each job has waited', () => {
  const told: string[] = []
  const jobsInHand = {
    limit: () => 8,
    queueRead: (waiting: number) => void told.push(`${waiting} wait`),
    taken: (queueWaitMs: number) => void told.push(`waited ${queueWaitMs} ms`),
  }
  const [first, second] = SlotShare.among(2, jobsInHand)
  first?.queueRead(3)
  second?.queueRead(4)
  first?.queueRead(0)
  second?.taken(100)
  assert.deepEqual(told, ['3 wait', '7 wait', '4 wait', 'waited 100 ms'])
})
