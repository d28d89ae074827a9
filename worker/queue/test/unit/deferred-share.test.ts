// The share of the capacity that deferred jobs get, from readings of the queue.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { DeferredShare } from '../../src/wait/deferred-share.ts'

/** Jobs a second: deferred ones that leave their lane, all that workers can do, new ones. */
interface Rates {
  leaving: number
  capacity: number
  coming?: number
}

function scene() {
  let nowMs = 0
  let [first, outstanding, finished, active] = [100, 1_000, 0, 2]
  const share = new DeferredShare(() => nowMs)
  const observe = (jobsPerSecond: number, lane: 'deferred' | 'empty' = 'deferred') =>
    share.observe({
      first: lane === 'empty' ? undefined : Math.floor(first),
      jobsPerSecond,
      outstanding,
      finished,
      active,
    })
  return {
    measured: () => share.current(false),
    foreseen: () => share.current(true),
    observe,
    beginAnew() {
      first = 0
    },
    pass(ms: number) {
      nowMs += ms
    },
    /** A worker takes the first of the line into its empty slots. */
    fill(slots: number) {
      first += slots
      active += slots
    },
    /** Reads four times a second. */
    run({ leaving, capacity, coming = 0 }: Rates, seconds = 5) {
      for (let n = 0; n < 4 * seconds; n++) {
        observe(capacity)
        nowMs += 250
        first += leaving / 4
        finished += capacity / 4
        outstanding += (coming - capacity) / 4
      }
    },
  }
}

function assertWithin(value: number, low: number, high: number): void {
  assert.ok(value >= low && value <= high, `${value}, not ${low} to ${high}`)
}

test('before anything is measured, deferred jobs are taken to get everything', () => {
  const { measured, foreseen, observe } = scene()
  assert.equal(measured(), 1)
  observe(100)
  assert.equal(measured(), 1)
  assert.equal(foreseen(), 1)
})

test('the share is what leaves of what could, and follows a change within seconds', () => {
  const { measured, run } = scene()
  run({ leaving: 50, capacity: 100 })
  assertWithin(measured(), 0.48, 0.55)
  run({ leaving: 360, capacity: 400 })
  assertWithin(measured(), 0.85, 1)
})

test('few jobs tell little: nobody is told twice the time because the first batch was small', () => {
  const { measured, run } = scene()
  run({ leaving: 4, capacity: 10 }, 0.75)
  assertWithin(measured(), 0.7, 0.9)
  run({ leaving: 4, capacity: 10 })
  assertWithin(measured(), 0.35, 0.45)
})

test('a share is bounded, so that a stop of a moment makes nobody wait for ever', () => {
  const { measured, run } = scene()
  run({ leaving: 0, capacity: 100 })
  assert.equal(measured(), 0.25)
  run({ leaving: 1_000, capacity: 100 })
  assert.equal(measured(), 4)
})

test('as soon as new requests are held, what they will take is foreseen: a third at the most', () => {
  const { measured, foreseen, run, observe } = scene()
  run({ leaving: 10, capacity: 10, coming: 30 })
  observe(100)
  assertWithin(measured(), 0.95, 1.05)
  assertWithin(foreseen(), 0.65, 0.75)
  observe(40)
  assert.equal(foreseen(), 2 / 3)
})

test('a line that moves faster than its workers can do, because some have left it, is not held to what is foreseen', () => {
  const { measured, foreseen, run } = scene()
  run({ leaving: 200, capacity: 100, coming: 30 })
  assertWithin(measured(), 1.8, 2)
  assert.equal(foreseen(), measured())
})

test('where nothing comes, nothing is overtaken', () => {
  const { measured, foreseen, run } = scene()
  run({ leaving: 90, capacity: 100 })
  assert.equal(foreseen(), measured())
})

test('times without deferred jobs, and numbers that begin anew, are not counted', () => {
  const { measured, run, observe, pass, beginAnew } = scene()
  run({ leaving: 100, capacity: 100 })
  observe(100)
  const before = measured()
  observe(100, 'empty')
  pass(60_000)
  observe(100)
  pass(250)
  beginAnew()
  observe(100)
  assert.equal(measured(), before)
})

test('a reading with a number that is not finite is ignored, and does not stay in what is measured', () => {
  const { measured, foreseen, run, observe, pass } = scene()
  run({ leaving: 100, capacity: 100 })
  for (const jobsPerSecond of [Number.POSITIVE_INFINITY, Number.NaN]) {
    observe(jobsPerSecond)
    pass(250)
    run({ leaving: 100, capacity: 100 })
    assertWithin(measured(), 0.9, 1.05)
    assert.equal(foreseen(), measured())
  }
})

test('without workers nothing is foreseen', () => {
  const { foreseen, run } = scene()
  run({ leaving: 0, capacity: 0, coming: 10 })
  assert.equal(foreseen(), 1)
})

test('a few jobs tell little beside what new requests are expected to take', () => {
  const { foreseen, run } = scene()
  run({ leaving: 2, capacity: 4, coming: 10 }, 1)
  assertWithin(foreseen(), 0.55, 0.65)
})

test('the lane that is empty after the very first job is not taken to have stood still', () => {
  const { measured, run, observe, pass, beginAnew } = scene()
  run({ leaving: 100, capacity: 100 })
  beginAnew()
  observe(100)
  const before = measured()
  pass(60_000)
  observe(100, 'empty')
  assert.equal(measured(), before)
})

test('a worker that joins and takes the first of the line at once does not make the line look faster than its workers', () => {
  const { measured, foreseen, run, observe, pass, fill } = scene()
  run({ leaving: 10, capacity: 10, coming: 30 })
  observe(10)
  pass(250)
  fill(28)
  observe(80)
  assertWithin(measured(), 0.9, 1.05)
  assertWithin(foreseen(), 0.65, 0.75)
})
