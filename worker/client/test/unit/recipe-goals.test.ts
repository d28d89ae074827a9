// When `pnpm --filter @spillway/client recipes` says that a goal was missed.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { goalsMissed, type Mode, type Row } from '../../recipes/check/goals.ts'

const row = (mode: Mode, loginsPerSecond: number, p99Ms: number): Row => ({
  recipe: 'express',
  mode,
  loginsPerSecond,
  reasons: {},
  p99Ms: { file: p99Ms, time: p99Ms / 2 },
  takenByOthers: 0,
})
const before = row('before', 20, 6_000)

test('neighbours have 50 ms, or twice what the framework itself takes', () => {
  const missed = (ms: number, frameworkMs: number) =>
    goalsMissed([before, row('after, without Redis', 40, ms), row('without hashing', 40, frameworkMs)], true)
  assert.deepEqual(missed(49, 10), [])
  assert.deepEqual(missed(80, 30), ['express, after, without Redis: the file took 80 ms at p99, not 60'])
  assert.deepEqual(missed(199, 100), [])
})

test('logins do not become fewer, and twice as many with a queue and the native engine', () => {
  const missed = (mode: Mode, perSecond: number, hasEngine: boolean) =>
    goalsMissed([before, row(mode, perSecond, 10)], hasEngine)
  assert.deepEqual(missed('after, without Redis', 20, true), [])
  assert.deepEqual(missed('after, without Redis', 19, true), ['express, after, without Redis: 19.0 logins/s, not 20.0'])
  assert.deepEqual(missed('after, with the queue', 30, false), [])
  assert.deepEqual(missed('after, with the queue', 30, true), [
    'express, after, with the queue: 30.0 logins/s, not 40.0',
  ])
})
