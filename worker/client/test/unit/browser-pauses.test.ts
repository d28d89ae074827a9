// When the client for pages comes back: as asked, never in a busy loop, never all at the same time.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { pauseAfter, pauseUntil } from '../../src/browser/line.ts'

const soonest = () => 0
const latest = () => 1 - Number.EPSILON
const ticket = (retryAfterMs?: number) => ({ status: 202, text: '', body: {}, retryAfterMs })
const busy = (retryAfterMs?: number) => ({ status: 503, text: '', body: {}, retryAfterMs })

for (const [name, answer] of Object.entries({ ticket, busy })) {
  test(`${name}: nothing comes back before the Retry-After, and none before a second`, () => {
    assert.equal(pauseAfter(answer(4_000), 0, soonest), 4_000)
    for (const retryAfterMs of [0, -1, -1e12, 200, undefined]) {
      assert.equal(pauseAfter(answer(retryAfterMs), 0, soonest), 1_000)
    }
  })

  test(`${name}: those that were told the same time come back at different ones`, () => {
    assert.ok(pauseAfter(answer(4_000), 0, latest) >= 5_000 - 1)
    assert.ok(pauseAfter(answer(4_000), 0, latest) <= 6_000)
  })

  test(`${name}: without a Retry-After the pauses double up to eleven seconds`, () => {
    const pauses = [0, 1, 2, 3, 4, 50].map((failures) => Math.round(pauseAfter(answer(), failures, latest)))
    assert.deepEqual(pauses, [2_000, 3_000, 5_000, 9_000, 11_000, 11_000])
  })
}

test('a ticket is redeemed within its life, whatever the server says; a refusal holds as long as it says', () => {
  assert.ok(pauseAfter(ticket(3_600_000), 0, latest) <= 37_500)
  assert.equal(pauseAfter(busy(3_600_000), 0, soonest), 3_600_000)
})

test('a ticket that was kept is redeemed when it was due, also when the clock was set meanwhile', () => {
  assert.equal(pauseUntil(Date.now() - 5_000), 0)
  assert.ok(Math.abs(pauseUntil(Date.now() + 5_000) - 5_000) < 1_000)
  assert.equal(pauseUntil(Date.now() + 1e12), 30_000)
})
