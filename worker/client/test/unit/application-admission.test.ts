// Which calls of an application are refused, when they are told, and when they may come back.
import assert from 'node:assert/strict'
import type { Load } from '@spillway/queue/order'
import { test, vi } from 'vitest'
import { CallAdmission } from '../../src/application/admission.ts'
import type { Backend } from '../../src/application/backend.ts'
import { RunningCalls } from '../../src/application/running-calls.ts'

const quick: Load = {
  ...{ known: true, workers: 1, slots: 2, jobsPerSecond: 47, linePerSecond: 47, serviceMs: 42, latencyMs: 43 },
  ...{ paused: false, open: 3, line: 0, active: 2 },
}
const admissionAt = (load: Load, maxOutstanding = 10_000) =>
  new CallAdmission(
    () => load,
    maxOutstanding,
    () => 0,
  )

test('a call goes before tickets, so that these make no call busy', () => {
  assert.equal(admissionAt({ ...quick, line: 40_000 }).refusalOf(8_000), undefined)
  assert.equal(admissionAt({ ...quick, open: 400 }).refusalOf(8_000)?.code, 'busy')
  assert.equal(admissionAt({ ...quick, open: 400 }).refusalOf(10_000), undefined)
  assert.equal(admissionAt({ ...quick, open: 4 }, 6).refusalOf(8_000)?.code, 'busy')
})

test('a call that the next seconds can answer is let in, whatever the last minutes could do', () => {
  assert.equal(admissionAt({ ...quick, linePerSecond: 1, open: 100 }).refusalOf(8_000), undefined)
  assert.equal(admissionAt({ ...quick, jobsPerSecond: 4, open: 100 }).refusalOf(8_000)?.code, 'busy')
})

test('while Redis does not answer, the last known capacity counts; while the queue is paused, nothing does', () => {
  const away = { ...quick, known: false, workers: 0, slots: 0, jobsPerSecond: 0, serviceMs: 0 }
  assert.equal(admissionAt(away).refusalOf(8_000), undefined)
  assert.equal(admissionAt({ ...away, open: 400 }).refusalOf(8_000)?.code, 'busy')
  assert.equal(admissionAt({ ...quick, paused: true }).refusalOf(8_000)?.code, 'busy')
})

test('tickets fill 0.6 of what is hashed in their life, together with the calls before them', () => {
  const request = { holdMs: 0, ticketLifeMs: 300_000, goesBeforeTickets: false }
  const room = 0.6 * 47 * 300
  assert.equal(admissionAt({ ...quick, line: room - 4 }).placeOf(request), 'ticketed')
  for (const full of [{ line: room - 3 }, { line: room, open: 0 }, { open: room }])
    assert.throws(() => admissionAt({ ...quick, ...full }).placeOf(request), { code: 'busy' })
  const again = { holdMs: 8_000, ticketLifeMs: 200_000, goesBeforeTickets: true }
  assert.equal(admissionAt({ ...quick, line: 1_000 }).placeOf(again), 'open')
  assert.equal(admissionAt({ ...quick, line: 1_000, open: 400 }).placeOf(again), 'ticketed')
})

test('who is refused may come back when those before are done, and is told in seconds', () => {
  const admission = admissionAt({ ...quick, open: 940 })
  const told = Array.from({ length: 470 }, () => admission.refusalOf(8_000))
  assert.deepEqual([told[0]?.retryAfterMs, told.at(-1)?.retryAfterMs], [2_000, 11_000])
  const late = admission.late()
  assert.equal(late.code, 'expired')
  assert.equal(late.headers['retry-after'], '12')
})

test('without workers calls are let in for a moment, and refused when that is over', () => {
  let nowMs = 0
  const none = { ...quick, workers: 0, slots: 0, jobsPerSecond: 0 }
  const admission = new CallAdmission(
    () => none,
    10_000,
    () => nowMs,
  )
  assert.equal(admission.refusalOf(8_000), undefined)
  assert.equal(admission.late().code, 'no_worker')
  nowMs = 2_001
  assert.deepEqual([admission.refusalOf(8_000)?.code, admission.noWorkers()?.retryAfterMs], ['no_worker', 1_000])
})

test('a refusal is held: a client that calls again at once gains nothing', async (t) => {
  vi.useFakeTimers()
  t.onTestFinished(() => void vi.useRealTimers())
  const load = { ...quick, open: 1_000_000 }
  const none = () => assert.fail('it was refused')
  const times = { now: () => Date.now(), whenKnown: async () => undefined, close: async () => undefined }
  const follow: Backend['follow'] = async (_ticket, { place }) => assert.fail(place())
  const backend: Backend = { by: 'workers', load: () => load, ...times, perform: none, follow }
  const calls = new RunningCalls(backend, { waitMs: 8_000, maxOutstanding: 10_000 })
  const ticket = { id: '1', name: 'verify' as const, attempt: 0, deadline: 0, expiresAt: 0 }
  const request = { password: 'x', storedHash: null }
  const signal = new AbortController().signal
  const codes: unknown[] = []
  for (const call of [
    calls.run('hash', { password: 'x' }, {}),
    calls.admit(signal),
    calls.begin({ ...ticket, contents: { request } }, 300_000, signal),
    calls.redeem({ ...ticket, attempt: 1, contents: { request } }, 8_000, 300_000, signal),
  ])
    call.catch(({ code }) => codes.push(code))
  await vi.advanceTimersByTimeAsync(2_999)
  assert.deepEqual(codes, [])
  await vi.advanceTimersByTimeAsync(1_002)
  assert.deepEqual(codes, Array(4).fill('busy'))
})
