// A gateway's view of the queue: the last reading, the jobs added since, and the wait predicted from both.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { lanes } from '../../src/wire/job.ts'
import { depth, noDepth, scene, workers } from '../load-scene.ts'

const noWorkers = { workers: 0, slots: 0, jobsPerSecond: 0, linePerSecond: 0, serviceMs: 0, latencyMs: 0 }

test('before the first reading nothing is known, and no worker is counted on', () => {
  const { state } = scene()
  assert.deepEqual(state.current(), {
    known: false,
    ...noDepth,
    ...noWorkers,
    linePerSecond: 20,
  })
  for (const lane of lanes) assert.equal(state.predictedWaitMs(lane), Number.POSITIVE_INFINITY)
})

test('a held job waits for those that are held or in hand, a deferred one for all, and no job less than its own time', () => {
  const { state } = scene()
  state.reading().succeeded(depth, workers)
  assert.deepEqual(state.current(), { known: true, ...depth, ...workers })
  assert.equal(state.predictedWaitMs('held'), 600)
  assert.equal(state.predictedWaitMs('deferred'), 2_600)
  state.reading().succeeded(noDepth, workers)
  assert.equal(state.predictedWaitMs('held'), 200)
})

test('while the queue is paused no job has an end, and the line does not move; what is hashed is known afterwards', () => {
  const { state } = scene()
  state.reading().succeeded({ ...depth, paused: true }, workers)
  for (const lane of lanes) assert.equal(state.predictedWaitMs(lane), Number.POSITIVE_INFINITY)
  assert.equal(state.expectedWaitMs({ held: 0, deferred: 0 }), Number.POSITIVE_INFINITY)
  assert.deepEqual([state.line().paused, state.line().perSecond], [true, 0])
  assert.equal(state.current().jobsPerSecond, workers.jobsPerSecond)
  state.reading().succeeded({ ...depth, paused: false }, workers)
  assert.equal(state.predictedWaitMs('held'), 600)
  assert.equal(state.line().paused, false)
})

test('a job of a known device waits for those in hand, and with each one before it for one other', () => {
  const { state } = scene()
  const predicted = () => state.predictedWaitMs('known')
  state.reading().succeeded({ ...depth, waiting: 100 }, workers)
  assert.equal(predicted(), 400)
  state.added('held')
  state.added('deferred')
  assert.equal(predicted(), 400)
  const reading = state.reading()
  state.added('known')
  assert.equal(state.current().waiting, 102)
  assert.equal(predicted(), 600)
  // The reading may not include it.
  reading.succeeded({ ...depth, waiting: 101, aheadOfKnown: 3 }, workers)
  assert.equal(predicted(), 800)
  state.reading().succeeded({ ...depth, waiting: 101, aheadOfKnown: 3 }, workers)
  assert.equal(predicted(), 600)
  // Behind no more than there are.
  state.reading().succeeded({ ...depth, waiting: 2, aheadOfKnown: 3 }, workers)
  assert.equal(predicted(), 500)
})

test('jobs added since the last reading count at once, in their lane, until a reading that began later is back', () => {
  const { state } = scene()
  const counted = () => [state.current().waiting, state.current().deferred]
  state.reading().succeeded(depth, workers)
  state.added('held')
  state.added('deferred')
  state.added('deferred')
  assert.deepEqual(counted(), [4, 22])
  const reading = state.reading()
  state.added('held')
  state.added('deferred')
  reading.succeeded(depth, workers)
  assert.deepEqual(counted(), [4, 21])
  state.reading().succeeded(depth, workers)
  assert.deepEqual(counted(), [3, 20])
})

test('a reading that fails takes away the workers, and neither the depth nor what was added', () => {
  const { state } = scene()
  state.reading().succeeded(depth, workers)
  state.added('held')
  state.reading().failed()
  assert.deepEqual(state.current(), { known: false, ...depth, waiting: 4, ...noWorkers, linePerSecond: 10 })
  assert.equal(state.predictedWaitMs('held'), Number.POSITIVE_INFINITY)
})

test('after Redis was away the workers of before count for a second and a half, while they have not published again', () => {
  const { state, pass } = scene()
  state.reading().succeeded(depth, workers)
  state.reading().failed()
  pass(1_500)
  state.reading().succeeded(depth, noWorkers)
  assert.deepEqual(state.current(), { known: true, ...depth, ...workers })
  pass(1)
  state.reading().succeeded(depth, noWorkers)
  assert.deepEqual(state.current(), { known: true, ...depth, ...noWorkers, linePerSecond: 10 })
})

test('workers that are gone do not count for longer because Redis fails again and again', () => {
  const { state, pass } = scene()
  state.reading().succeeded(depth, workers)
  for (let ms = 0; ms <= 1_500; ms += 250) {
    state.reading().failed()
    pass(125)
    state.reading().succeeded(depth, noWorkers)
    pass(125)
  }
  assert.equal(state.current().workers, 0)
  state.reading().failed()
  state.reading().succeeded(depth, noWorkers)
  assert.equal(state.current().workers, 0)
})

test('workers that are back count as they are now, and those that leave later are gone at once', () => {
  const { state } = scene()
  state.reading().succeeded(depth, workers)
  state.reading().failed()
  const others = { workers: 2, slots: 4, jobsPerSecond: 40, linePerSecond: 40, serviceMs: 100, latencyMs: 100 }
  state.reading().succeeded(depth, others)
  assert.equal(state.current().slots, 4)
  const elsewhere = scene().state
  elsewhere.reading().succeeded(depth, workers)
  elsewhere.reading().succeeded(depth, noWorkers)
  assert.equal(elsewhere.current().workers, 0)
})

test('an outage before the first worker was seen gives nobody any credit', () => {
  const { state, pass } = scene()
  state.reading().failed()
  pass(100)
  state.reading().succeeded(depth, noWorkers)
  state.reading().succeeded(depth, workers)
  state.reading().succeeded(depth, noWorkers)
  assert.equal(state.current().workers, 0)
})

// How long a job in its place will wait, by what deferred jobs get of the capacity.

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

for (const part of ['waiting', 'deferred', 'active', 'absent'] as const) {
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

test('a job that was put behind the line counts as deferred', () => {
  const { state } = scene()
  state.reading().succeeded(depth, workers)
  state.added('behind')
  assert.equal(state.current().deferred, 21)
})

// The progress of the line, from readings of the queue and from numbers that this process gave out.

test('the line serves the number of its first job, and the last number when no job is deferred', () => {
  const { state } = scene()
  const seen = (deferred: number, first: number | undefined, last: number) => {
    state.reading().succeeded({ ...depth, deferred }, workers, { first, last, finished: 0 })
    const { serving, last: known } = state.line()
    return [serving, known]
  }
  assert.deepEqual(state.line(), { serving: 0, last: 0, perSecond: 0, paused: false })
  assert.deepEqual(seen(4, 3, 7), [3, 7])
  // A job that was just added has no number yet.
  assert.deepEqual(seen(5, undefined, 8), [3, 8])
  assert.deepEqual(seen(0, undefined, 9), [9, 9])
  state.numbered(12)
  assert.equal(state.line().last, 12)
  state.numbered(11)
  assert.equal(state.line().last, 12)
  // Redis lost its data, and counts from the beginning.
  assert.deepEqual(seen(1, 1, 1), [9, 12])
})

test('a number that somebody made up is followed no further than Redis follows it', () => {
  const { state } = scene()
  const seen = (first: number | undefined, last: number) => {
    state.reading().succeeded({ ...depth, deferred: 1 }, workers, { first, last, finished: 0 })
    const { serving, last: known } = state.line()
    return [serving, known]
  }
  assert.deepEqual(seen(10 ** 15, 7), [7, 7], 'the number of a job')
  assert.deepEqual(seen(10 ** 14, 10 ** 15 - 1), [10 ** 14, 10 ** 15 - 1])
  // Out of range: Redis has no last number, until it has given out the next one.
  assert.deepEqual(seen(undefined, 0), [10 ** 14, 10 ** 15 - 1])
  assert.deepEqual(seen(1, 2), [1, 2])
})

test('the rate of the line is the share of the capacity that deferred jobs get, and 0 without workers', () => {
  const { state, pass } = scene()
  for (let first = 0; first <= 50; first += 5, pass(1_000))
    state.reading().succeeded(depth, workers, { first, last: 0, finished: first })
  // Of ten jobs a second every other one was deferred.
  assert.equal(Math.round(state.line().perSecond), 5)
  state.reading().failed()
  assert.equal(state.line().perSecond, 0)
})
