// Whose answers wait that no limit counts, and how long.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { ConnectionPace } from '../../src/plugins/load-shedding/connection-pace.ts'

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
