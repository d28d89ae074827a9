// What calls will take, by units of work that whatever hashes has measured: before one as dear was ever hashed.
import assert from 'node:assert/strict'
import { estimateMs, Tally, workOfRequest } from '@spillway/queue/wire/work'
import { test } from 'vitest'
import { withOwnWork } from '../../src/application/backend.ts'
import { Calls } from '../../src/application/beside/calls.ts'

const policy = { algorithm: 'argon2id', memoryKib: 19_456, time: 2, parallelism: 1 } as const
const bcryptOf = (cost: number) => `$2b$${String(cost).padStart(2, '0')}$CCCCCCCCCCCCCCCCCCCCC.`
const storedBcrypt = `${bcryptOf(12)}${'.'.repeat(31)}`
const argon2Work = { kind: 'argon2', units: 2 * 19_456 }
const bcryptWork = { kind: 'bcrypt', units: 4_096 }

test('work is what the setting, the stored hash or the policy of a request says; of another format it is not known', () => {
  assert.deepEqual(workOfRequest({ password: 'x', policy }, policy), argon2Work)
  assert.deepEqual(workOfRequest({ password: 'x' }, policy), argon2Work)
  assert.deepEqual(workOfRequest({ password: 'x', storedHash: null }, policy), argon2Work)
  assert.deepEqual(workOfRequest({ password: '', exact: { setting: bcryptOf(12), password: '' } }, policy), bcryptWork)
  assert.deepEqual(workOfRequest({ password: 'x', policy: { algorithm: 'bcrypt', cost: 12 } }, policy), bcryptWork)
  assert.deepEqual(workOfRequest({ password: 'x', storedHash: storedBcrypt }, policy), bcryptWork)
  assert.equal(workOfRequest({ password: 'x', storedHash: 'of another system' }, policy), undefined)
})

/** Hashes of the policy took half as much again as was estimated for them, of which a millisecond does not count. */
const unitCosts = { argon2Ms: 0.0002, bcryptMs: 0.01, estimatedMs: 8 }
const RATIO = 13 / 9
const nothing = { known: true, paused: false, open: 0, line: 0, active: 0 }
const times = { serviceMs: 12, latencyMs: 12, jobsPerSecond: 166, linePerSecond: 150 }
const told = { ...nothing, ...times, workers: 1, slots: 2, unitCosts }

test('a first burst of dear hashes counts as what it will take, by the ratio that others had', () => {
  const own = new Tally()
  assert.deepEqual(withOwnWork(told, own), told)
  for (let n = 0; n < 3; n += 1) own.add({ kind: 'bcrypt', units: 4_096 })
  const { serviceMs, jobsPerSecond } = withOwnWork({ ...told, open: 2, active: 1 }, own)
  const estimatedMs = estimateMs({ kind: 'bcrypt', units: 4_096 }, unitCosts)
  assert.ok(Math.abs(serviceMs - RATIO * estimatedMs) < 1e-6)
  assert.ok(Math.abs(jobsPerSecond * serviceMs - told.jobsPerSecond * told.serviceMs) < 1e-6)
})

test('jobs of others count as what was hashed of late, and so do other formats', () => {
  const own = new Tally()
  own.add({ kind: 'bcrypt', units: 4_096 })
  const { serviceMs } = withOwnWork({ ...told, open: 6, line: 2, active: 2 }, own)
  const estimatedMs = estimateMs({ kind: 'bcrypt', units: 4_096 }, unitCosts)
  assert.ok(Math.abs(serviceMs - (9 * 12 + RATIO * estimatedMs) / 10) < 1e-6)
  const other = new Tally()
  other.add(undefined)
  assert.ok(Math.abs(withOwnWork(told, other).serviceMs - RATIO * 8) < 1e-6)
})

test('the tally is of calls that wait or are in hand', () => {
  const calls = new Calls()
  const cheap = calls.add({ password: 'x' }, { kind: 'argon2', units: 10_000 }, 1)
  const dear = calls.add({ password: 'x' }, { kind: 'argon2', units: 90_000 }, 1)
  const meanMs = () => Math.round(calls.work.meanMs(unitCosts))
  assert.deepEqual([calls.work.count, meanMs()], [2, 10])
  assert.equal(calls.next(0), cheap)
  assert.deepEqual([calls.work.count, meanMs()], [2, 10])
  for (let n = 0; n < 2; n += 1) calls.answered(cheap.id, { kind: 'mismatch' })
  assert.deepEqual([calls.work.count, meanMs()], [1, 18])
  calls.next(0)
  calls.returned(new Error('ended'))
  assert.deepEqual([calls.work.count, meanMs()], [1, 18])
  calls.forget(dear)
  assert.equal(calls.work.count, 0)
  const last = calls.add({ password: 'x' }, undefined, 1)
  calls.next(0)
  calls.forget(last)
  assert.equal(calls.work.count, 1, 'what is in hand takes its time')
  calls.returned(new Error('ended'))
  calls.rejectAll(new Error('over'))
  assert.equal(calls.work.count, 0)
})

test('a call that could only be answered too late is not begun, unless nothing else is in hand', () => {
  const calls = new Calls()
  const [first, second, third] = [1_000, 1_100, 1_200].map((endsAt) => calls.add({ password: 'x' }, undefined, endsAt))
  assert.equal(calls.next(2_000), first)
  assert.equal(calls.next(1_100), third)
  assert.equal(calls.next(1_100), undefined)
  assert.equal(calls.waiting, 1)
  assert.equal(calls.next(1_099), second)
})
