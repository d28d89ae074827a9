// The queueing model against what is known of it, and against a simulation of the same queue.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { chanceOfWaiting, slotsFor, utilization, waitQuantileMs } from '../../src/sizing.ts'

test('the chance of waiting agrees with the tables of Erlang C', () => {
  // One slot waits as often as it is busy; 8 Erlang on 10 slots wait in 40.9 % of the cases.
  assert.ok(Math.abs(chanceOfWaiting({ perSecond: 70, slotMs: 10, slots: 1 }) - 0.7) < 1e-9)
  assert.ok(Math.abs(chanceOfWaiting({ perSecond: 80, slotMs: 100, slots: 10 }) - 0.409) < 1e-3)
})

test('from full utilization on the queue grows without end', () => {
  assert.equal(waitQuantileMs({ perSecond: 100, slotMs: 10, slots: 1 }, 0.99), Number.POSITIVE_INFINITY)
  assert.equal(waitQuantileMs({ perSecond: 1, slotMs: 10, slots: 50 }, 0.99), 0)
})

test('the fewest slots are enough, and one fewer is not', () => {
  for (const perSecond of [3, 50, 500, 5_000]) {
    const demand = { perSecond, slotMs: 12 }
    const slots = slotsFor(demand, 100, 0.99)
    assert.ok(waitQuantileMs({ ...demand, slots }, 0.99) <= 100)
    assert.ok(waitQuantileMs({ ...demand, slots: slots - 1 }, 0.99) > 100)
  }
})

for (const { slots, busy } of [
  { slots: 1, busy: 0.8 },
  { slots: 4, busy: 0.9 },
  { slots: 16, busy: 0.95 },
]) {
  test(`predicted waits are within a tenth of simulated ones: ${slots} slots, ${busy * 100} % busy`, () => {
    const slotMs = 10
    const station = { perSecond: (busy * slots * 1_000) / slotMs, slotMs, slots }
    assert.ok(Math.abs(utilization(station) - busy) < 1e-9)
    const simulated = simulate(station, 500_000)
    const predicted = waitQuantileMs(station, 0.99)
    assert.ok(Math.abs(predicted / simulated - 1) < 0.1, `predicted ${predicted}, simulated ${simulated}`)
  })
}

/** The 99th percentile of the waits of this many logins, by the same numbers every time. */
function simulate(
  { perSecond, slotMs, slots }: { perSecond: number; slotMs: number; slots: number },
  logins: number,
): number {
  const random = createRandom(42)
  const freeAt = new Array<number>(slots).fill(0)
  const waits = new Float64Array(logins)
  let now = 0
  for (let login = 0; login < logins; login += 1) {
    now += (-Math.log(1 - random()) * 1_000) / perSecond
    // With hashes of one length, slots become free in the order in which they were taken.
    const slot = login % slots
    const startAt = Math.max(now, freeAt[slot] ?? 0)
    waits[login] = startAt - now
    freeAt[slot] = startAt + slotMs
  }
  waits.sort()
  return waits[Math.floor(logins * 0.99)] ?? 0
}

/** Numbers from 0 to 1 by a hash of a counter, so that neighbours are independent. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
  }
}
