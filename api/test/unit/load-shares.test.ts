// What an overloaded gateway lets through: promised requests, refusals, known devices.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { ConnectionPace } from '../../src/plugins/load-shedding/connection-pace.ts'
import { Preference, promisedShare } from '../../src/plugins/load-shedding/preference.ts'
import type { TokenBucket } from '../../src/plugins/token-bucket.ts'
import { refusalTimes } from '../refusal-times.ts'

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

test('refusals of an idle gateway are a hundredth of a second apart, and none is answered before an earlier one', () => {
  const dueMs = refusalTimes({ perSecond: () => 0, leastDelayMs: 500 })
  assert.deepEqual([dueMs(0), dueMs(0), dueMs(0)], [500, 510, 520])
  assert.equal(dueMs(19), 530)
  assert.equal(dueMs(100), 600)
  const quick = refusalTimes({ perSecond: () => 400, leastDelayMs: 500 })
  assert.deepEqual([quick(0), quick(0)], [500, 505])
})

test('a hundred refusals are answered at once, those that follow a hundredth of a second apart, and after a pause as at first', () => {
  const dueMs = refusalTimes({ perSecond: () => 0, leastDelayMs: 0 })
  const burst = Array.from({ length: 1_000 }, () => dueMs(0))
  assert.deepEqual([burst[100], burst[101], burst[200], burst.at(-1)], [0, 10, 1_000, 3_000])
  assert.equal(dueMs(500), 3_010)
  assert.equal(dueMs(10_000), 10_000)
})

test('each second has its own share, whichever request is the first in it', () => {
  let nowMs = 0
  const preference = new Preference({ deviceOf: ({ host }) => host, perSecond: () => 0, now: () => nowMs })
  /** How many are preferred before the first that is not. */
  const light = () => Array.from({ length: 100 }, () => preference.prefersLight()).indexOf(false)
  const devices = () =>
    Array.from({ length: 100 }, (_, n) => preference.prefersDevice({ host: `device ${n}` })).indexOf(false)
  assert.deepEqual([light(), devices()], [16, 16])
  nowMs = 1_000
  assert.deepEqual([devices(), light()], [16, 16])
  nowMs = 1_999
  assert.deepEqual([devices(), light()], [0, 0])
  nowMs = 2_000
  assert.deepEqual([light(), devices()], [16, 16])
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
