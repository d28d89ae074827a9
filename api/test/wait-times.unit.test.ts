// How long a request is held at most, and when the holder of a ticket is told to come back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { preferredWaitMs, remainingWaitMs, ticketRetryAfterS } from '../src/waiting/wait-times.ts'

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

test('the holder of a ticket comes back when its answer is expected, after one second at least and ten at most', () => {
  const after = (predictedMs: number) => ticketRetryAfterS({ predictedMs, ticketLeftMs: 60_000 })
  assert.equal(after(10), 1)
  assert.equal(after(1_000), 1)
  assert.equal(after(1_001), 2)
  assert.equal(after(9_500), 10)
  assert.equal(after(50_000), 10)
  assert.equal(after(Number.POSITIVE_INFINITY), 2)
})

test('the ticket is valid for another second after its Retry-After', () => {
  const before = (ticketLeftMs: number) => ticketRetryAfterS({ predictedMs: 50_000, ticketLeftMs })
  assert.equal(before(11_000), 10)
  assert.equal(before(10_999), 9)
  assert.equal(before(3_000), 2)
  assert.equal(before(1_500), 1)
})
