// Estimates of a job: its thread's processor time, the share of a core, the time to the result.
import assert from 'node:assert/strict'
import { test, vi } from 'vitest'
import { CapacityEstimate, measureCapacity } from '../../src/hashing/capacity-estimate.ts'

const near = (actual: number, expected: number, by = 0.01) =>
  assert.ok(Math.abs(actual - expected) <= expected * by, `${actual}, not ${expected}`)

/** A worker whose threads have spent a second before. */
function scene({ slots = 1, costMs = 20 } = {}) {
  const spent = { wallMs: 1_000, cpuMs: 1_000 }
  let nowMs = 0
  const estimate = new CapacityEstimate({
    slots,
    first: { costMs, latencyMs: 60 },
    times: () => ({ ...spent }),
    now: () => nowMs,
  })
  return {
    estimate,
    /** Jobs of this processor time, on threads with this share of a core, read twice a second */
    jobs(count: number, costMs: number, { share = 1, latencyMs = 60 } = {}): void {
      for (let n = 0; n < count; n += 1) {
        spent.cpuMs += costMs
        spent.wallMs += costMs / share
        nowMs += costMs / share / slots
        estimate.finished(latencyMs)
        if (Math.floor(nowMs / 500) > Math.floor((nowMs - costMs / share / slots) / 500)) estimate.serviceMs()
      }
    },
    idle(ms: number): void {
      nowMs += ms
    },
  }
}

test('until there are jobs, the times are those of the start', () => {
  const { estimate } = scene()
  assert.deepEqual([estimate.serviceMs(), estimate.lineMs(), estimate.latencyMs()], [20, 20, 60])
})

test('a job takes the time of its thread, however long it was in hand', () => {
  const { estimate, jobs } = scene()
  jobs(100, 16, { latencyMs: 160 })
  near(estimate.serviceMs(), 16)
  near(estimate.latencyMs(), 160)
})

test('the first jobs are believed, not the times of the start: accounts may have other hashes than the policy', () => {
  const { estimate, jobs } = scene()
  jobs(1, 250, { latencyMs: 260 })
  assert.deepEqual([estimate.serviceMs(), estimate.lineMs(), estimate.latencyMs()], [250, 250, 260])
  jobs(1, 150, { latencyMs: 160 })
  assert.deepEqual([estimate.serviceMs(), estimate.latencyMs()], [200, 210])
})

test('a change of hashes is followed within about ten jobs, for the next seconds and for the line, read one by one or all at once', () => {
  const [once, often] = [scene(), scene()]
  for (const { estimate, jobs } of [once, often]) {
    jobs(100, 20)
    estimate.serviceMs()
  }
  once.jobs(10, 40)
  for (let n = 0; n < 10; n += 1) {
    often.jobs(1, 40)
    often.estimate.serviceMs()
  }
  const expectedMs = 40 - 20 * 0.8 ** 10
  for (const { estimate } of [once, often]) {
    near(estimate.serviceMs(), expectedMs)
    near(estimate.lineMs(), expectedMs)
  }
})

test('a burst in which everything else runs first changes the next seconds, and hardly the line', () => {
  const { estimate, jobs, idle } = scene({ slots: 2 })
  jobs(2_000, 40)
  jobs(60, 40, { share: 0.3 })
  // 14 jobs a second of 47, as was believed for half a minute.
  near(estimate.serviceMs(), 40 / 0.3, 0.25)
  idle(100)
  assert.ok(estimate.serviceMs() > 40 * 1.5, 'a short pause does not end the burst')
  assert.ok(estimate.lineMs() < 40 * 1.25, `${estimate.lineMs()} ms`)
  idle(10_000)
  assert.ok(estimate.serviceMs() < 40 * 1.25, 'idle threads do not go on getting as little as they got last')
})

test('property: whatever happens, the line is never believed to be faster than free cores, nor slower than the least share that was seen', () => {
  let seed = 7
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed / 2 ** 31
  }
  for (let round = 0; round < 200; round += 1) {
    const slots = 1 + Math.floor(random() * 8)
    const costMs = 1 + random() * 300
    const { estimate, jobs, idle } = scene({ slots, costMs })
    let leastShare = 1
    for (let step = 0; step < 20; step += 1) {
      const share = 0.05 + random() * 0.95
      const count = Math.floor(random() * 100)
      jobs(count, costMs, { share })
      if (count > 0) leastShare = Math.min(leastShare, share)
      if (random() < 0.3) idle(random() * 120_000)
      for (const ms of [estimate.lineMs(), estimate.serviceMs()]) {
        assert.ok(ms >= costMs * 0.999, `${ms} ms for jobs of ${costMs}`)
        assert.ok(ms <= (costMs / leastShare) * 1.001, `${ms} ms for jobs of ${costMs} at ${leastShare} of a core`)
      }
    }
  }
})

test('a worker begins with the least processor time of a few verifies, without loading, on a busy machine too', async () => {
  let [nowMs, spentMs, calls] = [0, 0, 0]
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const times = () => ({ wallMs: nowMs, cpuMs: spentMs })
  const estimate = await measureCapacity(
    {
      async dummy() {
        calls += 1
        nowMs += calls === 1 ? 900 : calls === 2 ? 90 : 50
        spentMs += calls === 1 ? 800 : calls === 2 ? 40 : 20
      },
      times,
      native: {
        forgetCalls() {
          calls = 0
        },
      },
    },
    2,
  )
  assert.deepEqual([estimate.lastServiceMs(), estimate.lineMs(), estimate.latencyMs()], [20, 20, 50])
  assert.equal(calls, 0)
  spentMs += 50
  nowMs += 50
  estimate.finished(60)
  near(estimate.serviceMs(), 50)
  assert.equal(estimate.latencyMs(), 60)
})
