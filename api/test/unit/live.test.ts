// The figures of the live page: what happened lately, percentiles, and the depth of the queue.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Lately } from '../../src/operators/gateways.ts'
import { LiveHistory, percentiles, scaleOf } from '../../src/operators/live.ts'
import { noOutcomes } from '../../src/plugins/metrics.ts'

const answered = (count: number) => ({ ...noOutcomes, answered: count })

test('what happened lately is all that happened within the first minute, and of later ones the last', () => {
  let nowMs = 5_000
  const lately = new Lately(() => nowMs)
  assert.deepEqual(lately.since(answered(0)), { lately: answered(0), latelyMs: 1 })
  for (let second = 1; second <= 300; second++) {
    nowMs += 1_000
    const recent = Math.min(second, 60)
    assert.deepEqual(lately.since(answered(second * 3)), { lately: answered(recent * 3), latelyMs: recent * 1_000 })
    lately.sample(answered(second * 3))
  }
})

test('percentiles are values that occurred: the least that so large a share does not exceed', () => {
  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1).toReversed()
  assert.deepEqual(percentiles(upTo(1)), { p50: 1, p95: 1 })
  assert.deepEqual(percentiles(upTo(2)), { p50: 1, p95: 2 })
  assert.deepEqual(percentiles(upTo(20)), { p50: 10, p95: 19 })
  assert.deepEqual(percentiles(upTo(100)), { p50: 50, p95: 95 })
})

test('the history begins with the jobs of both lanes, and is unknown where Redis did not answer', () => {
  const load = {
    workers: 1,
    slots: 2,
    jobsPerSecond: 10,
    linePerSecond: 10,
    serviceMs: 200,
    latencyMs: 200,
    waiting: 3,
    deferred: 20,
    active: 2,
    absent: 0,
    returned: 0,
    aheadOfKnown: 1,
  }
  for (const known of [true, false]) {
    const history = new LiveHistory({ load: () => ({ known, ...load }), finishedJobs: () => 0 })
    const { waiting, capacityPerSecond } = history.read()
    assert.deepEqual([waiting, capacityPerSecond], known ? [[23], [10]] : [[null], [null]])
    history.close()
  }
})

test('an early value that did not last flattens no chart; one that lasts, or is there now, is on the scale', () => {
  const calm = Array.from({ length: 20 }, () => 8)
  assert.equal(scaleOf([5_000, 5_000, ...calm]), 8)
  assert.equal(scaleOf([...calm, null, 5_000, ...calm]), 8)
  assert.equal(scaleOf([...calm, 40, 45, 50, ...calm]), 40)
  assert.equal(scaleOf([...calm, 5_000]), 5_000)
  assert.equal(scaleOf([]), 1)
})
