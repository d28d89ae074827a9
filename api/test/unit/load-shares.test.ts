// What an overloaded gateway lets through: promised requests, refusals, documents.
import assert from 'node:assert/strict'
import { Pace, type PaceOptions } from '@spillway/queue/wait/refusal-pace'
import { test } from 'vitest'
import { promisedShare } from '../../src/plugins/load-shedding/preference.ts'
import { ConnectionPace, type TokenBucket } from '../../src/plugins/token-bucket.ts'

/** Takes all that is left. */
function takeAll(share: TokenBucket): number {
  let taken = 0
  for (; taken < 1_000 && share.hasLeft(); taken += 1) share.take()
  return taken
}

test('32 promised requests may begin at once, and then as many as the gateway answers and one more in five milliseconds', () => {
  let perMs = 0
  let nowMs = 1_000
  const share = promisedShare(
    () => perMs,
    () => nowMs,
  )
  assert.equal(takeAll(share), 32)
  nowMs = 1_004
  assert.equal(takeAll(share), 0)
  nowMs = 1_005
  assert.equal(takeAll(share), 1)
  perMs = 0.8
  nowMs = 1_015
  assert.equal(takeAll(share), 10)
})

test('what is not used in time is not saved up, and what is used beyond it is not owed', () => {
  let nowMs = 0
  const share = promisedShare(
    () => 1,
    () => nowMs,
  )
  nowMs = 60_000
  assert.equal(takeAll(share), 32)
  for (let n = 0; n < 100; n += 1) share.take()
  nowMs = 60_010
  assert.equal(takeAll(share), 12)
})

/** Returns when a request that is refused at a time is answered, in milliseconds. */
function refusalTimes(options: PaceOptions): (nowMs: number) => number {
  let nowMs = 0
  const pace = new Pace(options, () => nowMs)
  return (atMs) => {
    nowMs = atMs
    return nowMs + pace.delayMs()
  }
}

test('refusals are paced, and none is answered before an earlier one: beyond a hundred half as many as are processed', () => {
  const dueMs = refusalTimes({ perSecond: () => 0, leastDelayMs: 500 })
  assert.deepEqual([dueMs(0), dueMs(0), dueMs(0)], [500, 510, 520])
  assert.deepEqual([dueMs(19), dueMs(100)], [530, 600])
  const quick = refusalTimes({ perSecond: () => 1_000, leastDelayMs: 500 })
  const spike = Array.from({ length: 3_000 }, () => quick(0))
  assert.deepEqual([spike[0], spike[1], spike[1_000], spike.at(-1)], [500, 502, 2_500, 3_000])
  assert.equal(quick(10_000), 10_500)
  const atOnce = refusalTimes({ perSecond: () => 0, leastDelayMs: 0 })
  const burst = Array.from({ length: 1_000 }, () => atOnce(0))
  assert.deepEqual([burst[100], burst[101], burst[200], burst.at(-1)], [0, 10, 1_000, 3_000])
  assert.deepEqual([atOnce(500), atOnce(10_000)], [3_010, 10_000])
})

// Whose answers wait that no limit counts, and how long.

test('a hundred answers a second come at once; beyond them each connection waits for a second after its last answer', () => {
  let nowMs = 1_000
  const pace = new ConnectionPace(() => nowMs)
  const [one, other, third] = [{}, {}, {}]
  for (let n = 0; n < 100; n += 1) assert.equal(pace.delayMs(one), 0)
  assert.equal(pace.delayMs(one), 1_000)
  assert.equal(pace.delayMs(one), 2_000)
  assert.equal(pace.delayMs(other), 0)
  assert.equal(pace.delayMs(other), 1_000)
  nowMs += 5
  assert.equal(pace.delayMs(one), 2_995)
  nowMs += 5
  assert.equal(pace.delayMs(third), 0)
  nowMs += 1_000
  for (let n = 0; n < 100; n += 1) assert.equal(pace.delayMs(one), 0)
})

test('clients that ask once in two seconds wait for nothing, however many there are', () => {
  let nowMs = 0
  const pace = new ConnectionPace(() => nowMs)
  const connections = Array.from({ length: 5_000 }, () => ({}))
  for (let round = 0; round < 3; round += 1) {
    for (const connection of connections) assert.equal(pace.delayMs(connection), 0)
    nowMs += 2_000
  }
})
