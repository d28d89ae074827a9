// The pauses between rounds.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseMs } from '../src/rounds.ts'

test('pauses are half to one and a half of the period, and seldom the same', () => {
  const pauses = Array.from({ length: 100 }, () => pauseMs(300))
  assert.ok(pauses.every((each) => each >= 150 && each <= 450))
  assert.ok(new Set(pauses).size > 90)
})
