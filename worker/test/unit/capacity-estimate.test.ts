// A worker's estimates of a job: the time of its threads under load, and the time until the verdict.
import assert from 'node:assert/strict'
import { test, vi } from 'vitest'
import { createCapacityEstimate, measureCapacity } from '../../src/hashing/capacity-estimate.ts'

/** A worker whose threads have spent 1,000 ms before. */
function scene() {
  let spentMs = 1_000
  const estimate = createCapacityEstimate({ first: { serviceMs: 20, latencyMs: 60 }, threadMs: () => spentMs })
  /** Jobs that take so much of a thread each, and so long until they are hashed. */
  function jobs(count: number, threadMs: number, latencyMs: number): void {
    for (let n = 0; n < count; n += 1) {
      spentMs += threadMs
      estimate.finished(latencyMs)
    }
  }
  return { estimate, jobs }
}

test('until there are jobs, the times are those of the start', () => {
  const { estimate } = scene()
  assert.deepEqual([estimate.serviceMs(), estimate.latencyMs()], [20, 60])
})

test('a job takes the time of its thread, however long it was in hand', () => {
  const { estimate, jobs } = scene()
  jobs(100, 16, 160)
  assert.ok(Math.abs(estimate.serviceMs() - 16) < 0.01)
  assert.ok(Math.abs(estimate.latencyMs() - 160) < 0.01)
})

test('the first jobs are believed, not the times of the start: accounts may have other hashes than the policy', () => {
  const { estimate, jobs } = scene()
  jobs(1, 250, 260)
  assert.deepEqual([estimate.serviceMs(), estimate.latencyMs()], [250, 260])
  jobs(1, 150, 160)
  assert.deepEqual([estimate.serviceMs(), estimate.latencyMs()], [200, 210])
})

test('a change is followed within about ten jobs, read one by one or all at once', () => {
  const [once, often] = [scene(), scene()]
  for (const { estimate, jobs } of [once, often]) {
    jobs(100, 20, 60)
    estimate.serviceMs()
  }
  once.jobs(10, 40, 40)
  for (let n = 0; n < 10; n += 1) {
    often.jobs(1, 40, 40)
    often.estimate.serviceMs()
  }
  const expectedMs = 40 - 20 * 0.8 ** 10
  for (const { estimate } of [once, often]) assert.ok(Math.abs(estimate.serviceMs() - expectedMs) < 1e-9)
})

test('what was told last may be asked for between the jobs of a batch, whose time is counted at once', () => {
  let spentMs = 0
  const estimate = createCapacityEstimate({ first: { serviceMs: 20, latencyMs: 60 }, threadMs: () => spentMs })
  for (let batch = 0; batch < 20; batch += 1) {
    spentMs += 80
    for (let n = 0; n < 5; n += 1) {
      estimate.finished(80)
      assert.equal(estimate.lastServiceMs(), batch === 0 ? 20 : 16)
    }
    assert.equal(estimate.serviceMs(), 16)
  }
})

test('without jobs the last times stay', () => {
  const { estimate, jobs } = scene()
  jobs(100, 16, 160)
  const before = estimate.serviceMs()
  assert.equal(estimate.serviceMs(), before)
})

test('a worker begins with the times of its second verify, without loading, and with none of it in those of the jobs to come', async () => {
  let [nowMs, spentMs, calls] = [0, 0, 0]
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const estimate = await measureCapacity({
    async decoy() {
      calls += 1
      nowMs += calls === 1 ? 900 : 30
      spentMs += calls === 1 ? 800 : 20
    },
    threadMs: () => spentMs,
    native: {
      forgetCalls() {
        calls = 0
      },
    },
  })
  assert.deepEqual([estimate.lastServiceMs(), estimate.latencyMs()], [20, 30])
  assert.equal(calls, 0)
  spentMs += 50
  estimate.finished(60)
  assert.deepEqual([estimate.serviceMs(), estimate.latencyMs()], [50, 60])
})

test('without a native engine a worker is measured as well', async () => {
  let spentMs = 0
  const estimate = await measureCapacity({
    async decoy() {
      spentMs += 20
    },
    threadMs: () => spentMs,
    native: undefined,
  })
  assert.equal(estimate.serviceMs(), 20)
})
