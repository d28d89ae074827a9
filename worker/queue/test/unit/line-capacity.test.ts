// The capacity that the line counts on while no worker is known.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Admission } from '../../src/wait/admission.ts'
import { LineCapacity, LoadState } from '../../src/wait/load-state.ts'
import { depth, workers } from '../load-scene.ts'

function scene() {
  let nowMs = 0
  return { line: new LineCapacity(() => nowMs), pass: (ms: number) => (nowMs += ms) }
}

test('before any worker is known, a little is counted on: an autoscaler may be starting workers', () => {
  const { line, pass } = scene()
  assert.equal(line.current(), 20)
  line.observe(0)
  pass(3_600_000)
  assert.equal(line.current(), 20)
})

test('what the last workers could do is counted on when they are late, and half of it after a quarter of a minute', () => {
  const { line, pass } = scene()
  line.observe(400)
  pass(250)
  line.observe(400)
  pass(1_600)
  line.observe(0)
  assert.ok(line.current() > 360)
  pass(13_400)
  assert.equal(line.current(), 200)
  line.observe(300)
  assert.equal(line.current(), 300)
})

test('workers that are known are counted on as they are, however long the next reading takes', () => {
  const { line, pass } = scene()
  line.observe(400)
  pass(60_000)
  assert.equal(line.current(), 400)
})

test('after long it is no more than before any worker was known, and never more than the last ones did', () => {
  for (const last of [5, 400]) {
    const { line, pass } = scene()
    line.observe(last)
    pass(10)
    line.observe(0)
    pass(600_000)
    assert.equal(line.current(), Math.min(last, 20))
  }
})

test('property: without workers the limit of jobs only falls, and is never the cap, whatever Redis does', () => {
  for (const stale of ['no worker', 'no answer'] as const) {
    let nowMs = 0
    const load = new LoadState(() => nowMs)
    let waiting = 0
    const admission = new Admission({
      ...{ load: () => ({ ...load.current(), waiting, deferred: 0, active: 0 }), predictedWaitMs: () => 0 },
      ...{ maxOutstanding: 10_000, lifeMs: 60_000, now: () => nowMs },
    })
    load.reading().succeeded(depth, workers)
    const letIn = () => {
      waiting = 0
      while (admission.refusalOfTicket(60_000) === undefined) waiting += 1
      return waiting
    }
    const usual = letIn()
    let before = usual
    for (let ms = 0; ms < 120_000; ms += 2_500) {
      nowMs += 2_500
      const reading = load.reading()
      if (stale === 'no answer') reading.failed()
      else reading.succeeded(depth, { ...workers, workers: 0, slots: 0, jobsPerSecond: 0, linePerSecond: 0 })
      const now = letIn()
      assert.ok(now <= before && now > 0, `${now} jobs after ${before}`)
      before = now
    }
    assert.equal(usual, 360)
  }
})
