// The sum of workers' entries, and invalid entries.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { FRESH_FOR_MS, fingerprintsOf, liveWorkers, sumCapacity } from '@spillway/queue/wire/capacity'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { test } from 'vitest'
import { entry, now } from '../../../test/capacity-entry.ts'

test('slots and jobs per second are summed up over workers of different speed', () => {
  const entries = {
    one: JSON.stringify({ ...entry, slots: 4, serviceMs: 20, lineMs: 16, latencyMs: 60 }),
    two: JSON.stringify({ ...entry, slots: 1, serviceMs: 100, lineMs: 40, latencyMs: 110 }),
  }
  const { workers, slots, jobsPerSecond, linePerSecond, serviceMs, latencyMs } = sumCapacity(liveWorkers(entries, now))
  assert.deepEqual(
    { workers, slots, jobsPerSecond, linePerSecond },
    { workers: 2, slots: 5, jobsPerSecond: 210, linePerSecond: 275 },
  )
  assert.ok(Math.abs(serviceMs - 5_000 / 210) < 1e-9)
  assert.equal(latencyMs, 70)
})

test('a worker that has answered no job yet counts like those that have, if there are any', () => {
  const answered = (count: number) => ({ finished: { ...entry.finished, answered: count } })
  const one = { ...entry, slots: 2, serviceMs: 500, lineMs: 400, latencyMs: 260, ...answered(40) }
  const added = { ...entry, slots: 6, serviceMs: 10, lineMs: 10, latencyMs: 10, ...answered(0) }
  const sumOf = (...all: (typeof entry)[]) =>
    sumCapacity(liveWorkers(Object.fromEntries(all.map((each, n) => [`worker-${n}`, JSON.stringify(each)])), now))
  const times = { jobsPerSecond: 16, linePerSecond: 20, serviceMs: 500, latencyMs: 260 }
  assert.deepEqual(sumOf(one, added), { workers: 2, slots: 8, ...times })
  assert.equal(sumOf(one, { ...added, ...answered(1) }).jobsPerSecond, 604)
  assert.equal(sumOf(added, added).jobsPerSecond, 1_200)
})

test('without workers there is no capacity', () => {
  const none = { workers: 0, slots: 0, jobsPerSecond: 0, linePerSecond: 0, serviceMs: 0, latencyMs: 0 }
  assert.deepEqual(sumCapacity(liveWorkers({}, now)), none)
})

test('an entry counts until it is stale, and not when it comes from the future', () => {
  const at = (time: number) => sumCapacity(liveWorkers({ one: JSON.stringify({ ...entry, at: time }) }, now)).workers
  assert.equal(at(now - FRESH_FOR_MS), 1)
  assert.equal(at(now - FRESH_FOR_MS - 1), 0)
  assert.equal(at(now + FRESH_FOR_MS), 1)
  assert.equal(at(now + FRESH_FOR_MS + 1), 0)
})

test('an invalid entry of a worker is ignored', () => {
  const changes: object[] = [
    ...[0, 1.5, 1e9].map((slots) => ({ slots })),
    ...[0, -1, 1e9, null].map((serviceMs) => ({ serviceMs })),
    ...[{ at: 'now' }, ...Object.keys(entry).map((field) => ({ [field]: undefined }))],
  ]
  const wrong = ['', 'x', 'null', '[]', '{}', ...changes.map((change) => JSON.stringify({ ...entry, ...change }))]
  const entries = Object.fromEntries([...wrong, JSON.stringify(entry)].map((text, i) => [`worker-${i}`, text]))
  assert.equal(sumCapacity(liveWorkers(entries, now)).workers, 1)
})

test('an entry with a shorter time than workers publish is ignored, as its capacity would have no bound', () => {
  const speedOf = (times: object) =>
    sumCapacity(liveWorkers({ one: JSON.stringify({ ...entry, slots: 1, ...times }) }, now)).jobsPerSecond
  assert.equal(speedOf({ serviceMs: 0.001, latencyMs: 0.001 }), 1_000_000)
  assert.equal(speedOf({ serviceMs: Number.MIN_VALUE }), 0)
  assert.equal(speedOf({ serviceMs: 0.0009 }), 0)
  assert.equal(speedOf({ latencyMs: Number.MIN_VALUE }), 0)
})

test('a live worker is told of by its id, without what a newer version adds', () => {
  const live = liveWorkers({ one: JSON.stringify({ ...entry, since: 'version 2' }) }, now)
  assert.deepEqual(live, new Map([['one', entry]]))
})

// Fingerprints of keys, by which clients and workers notice that they have others.

const [a, b] = ['a', 'b'].map((kid) => `${kid}:${randomBytes(32).toString('base64')}`)

test('a fingerprint is the start of a keyed code, of the key that seals first, and another one for each queue', () => {
  const both = parseKeyring(`${a},${b}`)
  const codes = both.macs({ purpose: 'fingerprint', id: '{spillway}' })
  const expected = codes.map((code) => code.subarray(0, 12).toString('base64url'))
  assert.deepEqual(fingerprintsOf(both, '{spillway}'), expected)
  assert.deepEqual(fingerprintsOf(parseKeyring(`${a}`), '{spillway}'), expected.slice(0, 1))
  assert.notDeepEqual(fingerprintsOf(both, '{other}'), expected)
})
