// How long a request is held at most, and when the holder of a ticket is told to come back.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { preferredWaitMs, remainingWaitMs, ticketRetryAfterS } from '../../src/waiting/wait-times.ts'

test('a request is held as long as its client prefers, and never longer than the limit', () => {
  assert.equal(preferredWaitMs(undefined, 8_000), 8_000)
  assert.equal(preferredWaitMs(0, 8_000), 0)
  assert.equal(preferredWaitMs(5_000, 8_000), 5_000)
  assert.equal(preferredWaitMs(9_000, 8_000), 8_000)
})

test('the time to add a job is part of the wait; a wait that this used up is no wish for a ticket at once', () => {
  assert.equal(remainingWaitMs(8_000, 0), 8_000)
  assert.equal(remainingWaitMs(8_000, 2_500), 5_500)
  assert.equal(remainingWaitMs(8_000, 8_000), 1)
  assert.equal(remainingWaitMs(8_000, 20_000), 1)
  assert.equal(remainingWaitMs(0, 0), 0)
  assert.equal(remainingWaitMs(0, 2_500), 0)
})

test('the holder of a ticket comes back one hold before its answer is expected, after one second at least and five at most', () => {
  const after = (predictedMs: number, holdMs = 8_000) =>
    ticketRetryAfterS({ predictedMs, holdMs, ticketLeftMs: 60_000 })
  assert.equal(after(10), 1)
  assert.equal(after(9_000), 1)
  assert.equal(after(9_001), 2)
  assert.equal(after(12_500), 5)
  assert.equal(after(50_000), 5)
  assert.equal(after(3_500, 0), 4)
  assert.equal(after(Number.POSITIVE_INFINITY), 2)
})

test('the ticket is valid for another second after its Retry-After', () => {
  const before = (ticketLeftMs: number) => ticketRetryAfterS({ predictedMs: 50_000, holdMs: 8_000, ticketLeftMs })
  assert.equal(before(6_000), 5)
  assert.equal(before(5_999), 4)
  assert.equal(before(3_000), 2)
  assert.equal(before(1_500), 1)
})
