// Which ETAs are judged: those that a change made wrong are not.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { etaErrors } from '../../src/rig/quantile.ts'

const S = 1_000
const JOINING = { beganAtMs: 10 * S, endedAtMs: 12 * S }
const SPIKE_ENDS = { beganAtMs: 30 * S, endedAtMs: 36 * S }

/** One that was told 10 % too long. */
const told = (atS: number, answeredAtS: number) => ({
  atMs: atS * S,
  etaMs: (answeredAtS - atS) * S * 1.1,
  answeredAtMs: answeredAtS * S,
})
/** One that was told twice the time. */
const wrong = (atS: number, answeredAtS: number) => ({ ...told(atS, answeredAtS), etaMs: 2 * (answeredAtS - atS) * S })

test('ETAs that a change made wrong are left out', () => {
  const { before, after } = etaErrors(
    [told(2, 8), wrong(5, 11), wrong(9, 20), wrong(11, 20), told(13, 29), wrong(20, 31), wrong(31, 40), told(37, 40)],
    [JOINING, SPIKE_ENDS],
  )
  assert.deepEqual({ before: before.count, after: after.count }, { before: 1, after: 2 })
  assert.ok(before.p90 < 0.11 && after.p90 < 0.11, `${before.p90} and ${after.p90}`)
})

test('without a later change, all that are told after the first are judged', () => {
  const { after } = etaErrors([told(13, 29), wrong(20, 31)], [JOINING])
  assert.equal(after.count, 2)
  assert.equal(after.p90, 1)
})
