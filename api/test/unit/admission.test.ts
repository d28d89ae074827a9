// The arithmetic of admission: who is held, gets a ticket at once, is refused, and for how long.
import assert from 'node:assert/strict'
import type { Lane, Load } from '@spillway/queue/queue-client'
import { Admission } from '@spillway/queue/wait/admission'
import { lanes } from '@spillway/queue/wire/job'
import { test } from 'vitest'
import { noDepth, workers } from '../../../worker/queue/test/load-scene.ts'
import { ApiError } from '../../src/plugins/errors.ts'

/** Two slots of 200 ms: 600 jobs in a ticket's life of 60 s, of which newcomers may take 360 */
const WORKERS: Load = { known: true, ...workers, ...noDepth }
/** The last ones did five jobs a second. */
const NO_WORKERS = { workers: 0, slots: 0, jobsPerSecond: 0, linePerSecond: 5, serviceMs: 0, latencyMs: 0 }
const ROOM = 360
const CAP = 10_000

/** Nobody overtakes. */
const LONG = { predicted: { held: 5_000, deferred: 5_000 } }

/** Admission before such a queue, where a job of each lane is answered after so many ms */
function scene({
  predicted = {},
  maxOutstanding = CAP,
}: {
  predicted?: Partial<Record<Lane, number>>
  maxOutstanding?: number
} = {}) {
  let nowMs = 1_000_000
  let load = WORKERS
  const predictedMs = { known: 300, held: 300, deferred: 300, behind: 300, ...predicted }
  const admission = new Admission({
    ...{ load: () => load, predictedWaitMs: (lane) => predictedMs[lane], now: () => nowMs },
    ...{ lifeMs: 60_000, maxOutstanding },
  })
  const orBusy = <T extends object>(admitted: T): T => {
    if ('reason' in admitted) throw new ApiError('busy', admitted)
    return admitted
  }
  return {
    admit(waitMs: number, queue: Partial<Load> = {}, isKnown = false) {
      load = { ...WORKERS, ...queue }
      const admitted = orBusy(admission.admit(waitMs, isKnown))
      return 'reason' in admitted ? assert.fail() : admitted
    },
    /** Why a request was refused, and after how many seconds it may come back. */
    refused(queue: Partial<Load>): [reason: string | undefined, retryAfterS: number | undefined] {
      try {
        load = { ...WORKERS, ...queue }
        orBusy(admission.admit(8_000, false))
      } catch (error) {
        if (error instanceof ApiError && error.code === 'busy') return [error.reason, error.retryAfterS]
        throw error
      }
      return assert.fail('was let in')
    },
    refuseWhenFull(queue: Partial<Load>) {
      load = { ...WORKERS, ...queue }
      orBusy(admission.refusalWhenFull() ?? {})
    },
    underway: (lane: Lane) => admission.underway(lane),
    pass(ms: number) {
      nowMs += ms
    },
  }
}

test("newcomers are let in up to the share of what is done within a ticket's life, wherever jobs wait", () => {
  for (const part of ['waiting', 'deferred', 'active'] as const) {
    const { admit, refused } = scene(LONG)
    assert.ok(admit(8_000, { [part]: ROOM - 1 }))
    assert.equal(refused({ [part]: ROOM })[0], 'predicted_wait')
  }
  const { admit, refused } = scene(LONG)
  assert.ok(admit(8_000, { waiting: 120, deferred: 120, active: 119 }))
  assert.equal(refused({ waiting: 120, deferred: 120, active: 120 })[0], 'predicted_wait')
})

test('slow workers are given as many jobs as they have slots all the same', () => {
  const slow = { slots: 4, jobsPerSecond: 0.01, linePerSecond: 0.01, serviceMs: 400_000, latencyMs: 400_000 }
  const { admit, refused } = scene({ predicted: { held: 400_000, deferred: 400_000 } })
  assert.ok(admit(8_000, { ...slow, active: 3 }))
  assert.equal(refused({ ...slow, active: 4 })[0], 'predicted_wait')
})

test('the cap is one that no worker lifts, and not one job goes beyond it', () => {
  const { admit, refused } = scene({ ...LONG, maxOutstanding: 5 })
  for (const queue of [{}, { linePerSecond: 1_000_000 }, { slots: 100 }, NO_WORKERS]) {
    assert.ok(admit(8_000, { ...queue, waiting: 2, deferred: 1, active: 1 }))
    assert.equal(refused({ ...queue, waiting: 2, deferred: 1, active: 2 })[0], 'too_many_waiting')
  }
})

test('no hoard of absent tickets keeps a request out that begins at once', () => {
  const hoard = { absent: 1_000_000, returned: CAP, deferred: CAP }
  assert.deepEqual(scene().admit(8_000, hoard), { lane: 'held', waitMs: 8_000 })
  assert.doesNotThrow(() => scene().refuseWhenFull(hoard))
})

test('tickets whose clients may come back count in the line once for each one in it, and close no line', () => {
  const { admit, refused } = scene(LONG)
  for (const away of [{ absent: 1_000_000 }, { absent: 200 }]) {
    assert.ok(admit(8_000, { deferred: ROOM / 2 - 1, ...away }))
    assert.equal(refused({ deferred: ROOM / 2, ...away })[0], 'predicted_wait')
  }
  // As many as have come back wait among the deferred ones.
  for (const returned of [200, 5_000]) {
    assert.ok(admit(8_000, { deferred: ROOM / 2 - 1 + returned, returned }))
    assert.equal(refused({ deferred: ROOM / 2 + returned, returned })[0], 'predicted_wait')
  }
  assert.ok(admit(8_000, { deferred: ROOM - 11, absent: 10 }))
  assert.equal(refused({ deferred: ROOM - 10, absent: 10 })[0], 'predicted_wait')
})

test('without a worker tickets are given as far as the last ones would answer them, and refused clients retry after a minute', () => {
  const { admit, refused } = scene({
    predicted: { held: Number.POSITIVE_INFINITY, deferred: Number.POSITIVE_INFINITY },
  })
  assert.deepEqual(admit(8_000, { ...NO_WORKERS, deferred: ROOM / 2 - 1 }), { lane: 'deferred', waitMs: 0 })
  assert.deepEqual(refused({ ...NO_WORKERS, deferred: ROOM / 2 }), ['predicted_wait', 60])
  assert.deepEqual(refused({ ...NO_WORKERS, linePerSecond: 1_000_000, deferred: CAP }), ['too_many_waiting', 60])
})

test('a newcomer overtakes those who wait while it would begin within a second, and no longer', () => {
  const overtakes = (heldMs: number) => scene({ predicted: { held: heldMs, deferred: 5_000 } }).admit(8_000).lane
  assert.equal(overtakes(200), 'held')
  assert.equal(overtakes(1_200), 'held')
  assert.equal(overtakes(1_201), 'deferred')
  assert.equal(overtakes(7_000), 'deferred')
})

test('a full line keeps nobody out who overtakes it, and the cap does', () => {
  const full = { deferred: ROOM }
  const overtaking = scene({ predicted: { held: 1_200, deferred: 36_000 } })
  assert.deepEqual(overtaking.admit(8_000, full), { lane: 'held', waitMs: 8_000 })
  // It would not be held.
  assert.throws(() => overtaking.admit(1_000, full), { code: 'busy' })
  assert.equal(overtaking.refused({ deferred: CAP })[0], 'too_many_waiting')
  assert.equal(scene({ predicted: { held: 1_201 } }).refused(full)[0], 'predicted_wait')
})

test('those that come in one moment are counted before their jobs are in the queue', () => {
  const { admit, underway } = scene({ predicted: { held: 200, deferred: 200 } })
  const settle = Array.from({ length: 10 }, () => {
    assert.equal(admit(8_000).lane, 'held')
    return underway('held')
  })
  // Ten jobs are a second of work.
  const eleventh = underway('held')
  assert.deepEqual(admit(8_000), { lane: 'deferred', waitMs: 8_000 })
  assert.deepEqual(admit(1_000), { lane: 'deferred', waitMs: 0 })
  for (const settled of [eleventh, ...settle]) settled()
  assert.equal(admit(8_000).lane, 'held')
})

for (const lane of lanes) {
  test(`a ${lane} job counts as outstanding before it is in the queue`, () => {
    const { admit, refused, underway } = scene(LONG)
    const settled = underway(lane)
    assert.equal(refused({ waiting: ROOM - 1 })[0], 'predicted_wait')
    settled()
    assert.ok(admit(8_000, { waiting: ROOM - 1 }))
  })
}

test('jobs that are not in the queue yet delay their own lane and those behind it', () => {
  /** The lane of a request behind eleven such jobs, which are more than a second of work. */
  const behind = (lane: Lane, isKnown = false) => {
    const { admit, underway } = scene()
    for (let n = 0; n < 11; n += 1) underway(lane)
    return admit(8_000, {}, isKnown).lane
  }
  for (const lane of lanes) assert.equal(behind(lane, true), 'known')
  const taken = lanes.map((lane) => behind(lane))
  assert.deepEqual(taken, ['deferred', 'deferred', 'held', 'held'])
  // Thirty-one such jobs are 3.1 s.
  for (const lane of lanes) {
    const { admit, underway } = scene(LONG)
    for (let n = 0; n < 31; n += 1) underway(lane)
    assert.deepEqual(admit(8_100), { lane: 'deferred', waitMs: 8_100 })
    assert.deepEqual(admit(8_099), { lane: 'deferred', waitMs: 0 })
    assert.deepEqual(admit(300, {}, true), { lane: 'known', waitMs: 300 })
  }
})

test('a request is refused from memory when the line is full, unless it overtakes', () => {
  const full = scene(LONG)
  assert.doesNotThrow(() => full.refuseWhenFull({ deferred: ROOM - 1 }))
  assert.throws(() => full.refuseWhenFull({ deferred: ROOM }), { code: 'busy', reason: 'predicted_wait' })
  assert.doesNotThrow(() => scene().refuseWhenFull({ deferred: ROOM }))
})

test('a request is held when it can be answered within its wait, and gets its ticket at once when not', () => {
  const quick = scene({ predicted: { held: 300, deferred: 5_000 } })
  assert.deepEqual(quick.admit(300), { lane: 'held', waitMs: 300 })
  assert.deepEqual(quick.admit(299), { lane: 'deferred', waitMs: 0 })
  const slow = scene({ predicted: { held: 2_000, deferred: 5_000 } })
  assert.deepEqual(slow.admit(5_000), { lane: 'deferred', waitMs: 5_000 })
  assert.deepEqual(slow.admit(4_999), { lane: 'deferred', waitMs: 0 })
})

test('a known device is let in whatever fills the queue, while its job would begin within a second', () => {
  const full = { waiting: 20, deferred: CAP }
  const flooded = { held: 5_000, deferred: 90_000 }
  const admitKnown = (knownMs: number, waitMs = 8_000, aheadOfKnown = 1) =>
    scene({ predicted: { ...flooded, known: knownMs } }).admit(waitMs, { ...full, aheadOfKnown }, true)
  assert.deepEqual(admitKnown(300), { lane: 'known', waitMs: 8_000 })
  // Five others, each with one job between, are a second of work.
  assert.deepEqual(admitKnown(1_200, 8_000, 11), { lane: 'known', waitMs: 8_000 })
  // Its wait says whether it is held, not whether it is let in.
  assert.deepEqual(admitKnown(300, 299), { lane: 'known', waitMs: 0 })
  assert.deepEqual(admitKnown(300, 0), { lane: 'known', waitMs: 0 })
})

test('known devices beyond what their lane takes are admitted as any other request', () => {
  const full = { aheadOfKnown: 12 }
  const crowded = scene({ predicted: { known: 1_201, held: 5_000, deferred: 7_000 } })
  assert.deepEqual(crowded.admit(8_000, full, true), { lane: 'deferred', waitMs: 8_000 })
  assert.throws(() => crowded.admit(8_000, { ...full, deferred: CAP }, true), { code: 'busy' })
  const calm = scene({ predicted: { known: 1_201 } })
  assert.deepEqual(calm.admit(8_000, full, true), { lane: 'held', waitMs: 8_000 })
  const never = Number.POSITIVE_INFINITY
  const away = scene({ predicted: { known: never, held: never, deferred: never } })
  assert.deepEqual(away.admit(8_000, NO_WORKERS, true), { lane: 'deferred', waitMs: 0 })
})

test('with one slot and slow hashes a known device keeps its lane, whatever is in hand and waits', () => {
  for (const serviceMs of [600, 2_000, 10_000]) {
    const perSecond = 1_000 / serviceMs
    const slow = { slots: 1, jobsPerSecond: perSecond, linePerSecond: perSecond, serviceMs, latencyMs: serviceMs }
    // The job in hand, one other and its own.
    const { admit } = scene({ predicted: { known: 3 * serviceMs, held: 60_000, deferred: 90_000 } })
    assert.equal(admit(30_000, { ...slow, waiting: 40, active: 1 }, true).lane, 'known')
  }
})

test('a refused client retries when there is capacity, after those that were refused before, and a second after the spike', () => {
  const { refused } = scene(LONG)
  // One too many and one to come: 2 of 10 a second, at a little less than full speed, plus 1 s.
  assert.equal(refused({ waiting: ROOM })[1], 2)
  // Fifty too many, and two to come: 6.24 s, and a second.
  assert.equal(refused({ waiting: ROOM + 49 })[1], 8)
  // Each one that was sent away stands before the next: with the hundredth, 101 of 10 a second.
  const later = scene(LONG)
  for (let n = 1; n < 100; n += 1) later.refused({ waiting: ROOM })
  assert.equal(later.refused({ waiting: ROOM })[1], 14)
})

test('those who were told to come back are expected no more once what they waited for has been done', () => {
  const { refused, pass } = scene(LONG)
  for (let n = 0; n < 100; n += 1) refused({ waiting: ROOM })
  // Five seconds, fifty jobs: fifty are still to come, and one too many is here.
  pass(5_000)
  assert.equal(refused({ waiting: ROOM })[1], 8)
  pass(60_000)
  assert.equal(refused({ waiting: ROOM })[1], 2)
})

test('whom no worker could tell when to come back is not expected', () => {
  const { refused } = scene({ maxOutstanding: ROOM })
  for (let n = 0; n < 100; n += 1) refused({ ...NO_WORKERS, waiting: ROOM })
  assert.equal(refused({ waiting: ROOM })[1], 2)
})

test('nobody is told to come back later than after a minute', () => {
  assert.equal(scene().refused({ waiting: 100_000, jobsPerSecond: 1 })[1], 60)
})
