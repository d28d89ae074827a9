// The sum of workers' entries, and invalid entries.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { toEntries } from '@spillway/queue/jobs/keys'
import {
  areForEachOther,
  canaryKey,
  canaryOf,
  FRESH_FOR_MS,
  finishedBy,
  liveWorkers,
  sumCapacity,
} from '@spillway/queue/wire/capacity'
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
  assert.deepEqual(sumOf(one, added), { workers: 2, slots: 8, ...times, unitCosts: entry.unitCosts })
  assert.equal(sumOf(one, { ...added, ...answered(1) }).jobsPerSecond, 604)
  assert.equal(sumOf(added, added).jobsPerSecond, 1_200)
})

test('without workers there is no capacity', () => {
  const none = { workers: 0, slots: 0, jobsPerSecond: 0, linePerSecond: 0, serviceMs: 0, latencyMs: 0 }
  assert.deepEqual(sumCapacity(liveWorkers({}, now)), { ...none, unitCosts: undefined })
})

test('what work takes is the mean over the slots of workers', () => {
  const told = (slots: number, ms: number) =>
    JSON.stringify({ ...entry, slots, unitCosts: { argon2Ms: ms, bcryptMs: 10 * ms, foretoldMs: 100 * ms } })
  const entries = { one: told(1, 0.1), two: told(3, 0.3) }
  const { argon2Ms = 0, bcryptMs = 0, foretoldMs = 0 } = sumCapacity(liveWorkers(entries, now)).unitCosts ?? {}
  const rounded = [argon2Ms, bcryptMs, foretoldMs].map((ms) => Math.round(ms * 1_000))
  assert.deepEqual(rounded, [250, 2_500, 25_000])
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

test('a stand-in at a gateway gives slots, and is no worker', () => {
  const { workers, slots } = sumCapacity(liveWorkers({ one: JSON.stringify({ ...entry, fallback: true }) }, now))
  assert.deepEqual({ workers, slots }, { workers: 0, slots: 4 })
})

test('a live worker is told of by its id, without what a newer version adds', () => {
  const live = liveWorkers({ one: JSON.stringify({ ...entry, since: 'version 2' }) }, now)
  assert.deepEqual(live, new Map([['one', entry]]))
})

test('names and values that come by turns are put together, and half a pair is left out', () => {
  assert.deepEqual(toEntries(['a', '1', 'b', 2]), { a: '1', b: '2' })
  assert.deepEqual(toEntries(['a', '1', 'b']), { a: '1' })
  for (const none of [[], null, 'ab', undefined]) assert.deepEqual(toEntries(none), {})
})

test('jobs that ended are counted whatever became of them', () => {
  assert.equal(finishedBy({ ...entry, finished: { answered: 4, expired: 2, failed: 1 } }), 7)
})

// The canary of workers' keys, by which a client notices that it has others.

const [a, b] = ['a', 'b'].map((kid) => `${kid}:${randomBytes(32).toString('base64')}`)
const canary = (keys: string, prefix = '{spillway}') => canaryOf(parseKeyring(keys), prefix)
const fit = (one: string, other: string) => areForEachOther(canary(one), canary(other))

test('keys fit through all steps of a rotation', () => {
  for (const [one, other] of [
    [`${a}`, `${a}`],
    [`${a},${b}`, `${a}`],
    [`${b},${a}`, `${a},${b}`],
    [`${b}`, `${b},${a}`],
  ] as const)
    assert.deepEqual([fit(one, other), fit(other, one)], [true, true])
})

test('keys do not fit where either side seals by a key that the other lacks', () => {
  for (const [one, other] of [
    [`${a}`, `${b}`],
    [`${b},${a}`, `${a}`],
    [`${a}`, `${b},${a}`],
  ] as const)
    assert.equal(fit(one, other), false)
  assert.equal(areForEachOther(canary(`${a}`), ''), false)
  assert.equal(areForEachOther(canary(`${a}`), 'garbage,,'), false)
})

test('a canary holds the first 12 bytes of a keyed code for each key', () => {
  assert.equal(canaryKey('{spillway}'), '{spillway}:canary')
  const [code] = parseKeyring(`${a}`).macs({ purpose: 'canary', id: '{spillway}' })
  assert.equal(canary(`${a}`), code.subarray(0, 12).toString('base64url'))
})

test('a canary is another one for each queue', () => {
  assert.notEqual(canary(`${a}`), canary(`${a}`, '{other}'))
})
