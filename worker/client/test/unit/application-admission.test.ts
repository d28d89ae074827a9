// Which calls of an application are refused, when they are told, and when they may come back.
import assert from 'node:assert/strict'
import type { Load } from '@spillway/queue/wire/capacity'
import { test } from 'vitest'
import { CallAdmission } from '../../src/application/admission.ts'

const quick: Load = {
  ...{ known: true, workers: 1, slots: 2, jobsPerSecond: 47, linePerSecond: 47, serviceMs: 42, latencyMs: 43 },
  ...{ waiting: 3, deferred: 0, active: 2, absent: 0, returned: 0, aheadOfKnown: 1 },
}
const admissionAt = (load: Load, maxOutstanding = 10_000) =>
  new CallAdmission({ load: () => load }, maxOutstanding, () => 0)

test('a call overtakes the tickets of a gateway, so that these make no call busy', () => {
  assert.equal(admissionAt({ ...quick, deferred: 40_000 }).refusalOf(8_000), undefined)
  assert.equal(admissionAt({ ...quick, waiting: 400 }).refusalOf(8_000)?.code, 'busy')
  assert.equal(admissionAt({ ...quick, waiting: 400 }).refusalOf(10_000), undefined)
})

test('a call that the next seconds can answer is let in, whatever the last minutes could do', () => {
  assert.equal(admissionAt({ ...quick, linePerSecond: 1, waiting: 100 }).refusalOf(8_000), undefined)
  assert.equal(admissionAt({ ...quick, jobsPerSecond: 4, waiting: 100 }).refusalOf(8_000)?.code, 'busy')
})

test('while Redis does not answer, the last known capacity holds', () => {
  const away = { ...quick, known: false, workers: 0, slots: 0, jobsPerSecond: 0, serviceMs: 0 }
  assert.equal(admissionAt(away).refusalOf(8_000), undefined)
})

test('a call that was too late may come back when those before it are done', () => {
  const late = admissionAt({ ...quick, waiting: 940 }).late()
  assert.equal(late.code, 'expired')
  assert.ok(late.retryAfterMs !== undefined && late.retryAfterMs > 20_000 && late.retryAfterMs < 30_000)
  assert.equal(late.headers['retry-after'], String(late.retryAfterMs / 1_000))
  const none = admissionAt({ ...quick, slots: 0 })
  assert.deepEqual([none.late().code, none.expired().code], ['no_worker', 'expired'])
})

test('a hundred refusals are told at once, and the others are held', async () => {
  const admission = admissionAt(quick)
  let told = 0
  for (let n = 0; n < 150; n += 1) void admission.refusalIsDue().then(() => (told += 1))
  await Promise.resolve()
  assert.ok(told >= 100 && told < 150, `${told} were told at once`)
})
