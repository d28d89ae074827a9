// Which worker counts as dead: one that could take jobs and does not. By a clock of the test's own.
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { type TestContext, test, vi } from 'vitest'
import { Liveness } from '../../src/consumer/liveness.ts'

const STUCK_AFTER_MS = 15_000
const STEP_MS = 500

/** A worker of two slots, and the Redis that it hears from every half a second, or does not. */
function scene(t: TestContext) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  t.onTestFinished(() => void vi.useRealTimers())
  let nowMs = 0
  let looks = 0
  const redis: { connected: boolean; answersOthers: boolean | Promise<boolean> } = {
    connected: true,
    answersOthers: true,
  }
  const liveness = new Liveness(
    {
      limit: () => 2,
      stuckAfterMs: STUCK_AFTER_MS,
      isConnected: () => redis.connected,
      async redisAnswersNewConnection() {
        looks += 1
        return redis.answersOthers
      },
    },
    () => nowMs,
  )
  t.onTestFinished(() => liveness.close())
  /** Lets time pass; with a number, Redis is heard all the while, and so many jobs wait */
  async function pass(ms: number, waiting?: number): Promise<void> {
    for (const end = nowMs + ms; nowMs < end; ) {
      nowMs += STEP_MS
      if (waiting !== undefined) liveness.redisAnswered(waiting)
      vi.advanceTimersByTime(STEP_MS)
      await turn()
    }
  }
  return { liveness, redis, pass, looks: () => looks }
}

test('a free slot, waiting jobs and nothing fetched: dead after the time that it is given, not before', async (t) => {
  const { liveness, pass } = scene(t)
  liveness.started()
  await pass(STUCK_AFTER_MS - STEP_MS, 1)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [true, STUCK_AFTER_MS - STEP_MS])
  await pass(STEP_MS, 1)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [false, STUCK_AFTER_MS])
})

test('a job that is fetched or finished is progress, and brings a dead worker back to life', async (t) => {
  const { liveness, pass } = scene(t)
  for (const progress of [() => liveness.started(), () => liveness.finished(), () => liveness.started()]) {
    await pass(STUCK_AFTER_MS, 1)
    assert.equal(liveness.isAlive(), false)
    progress()
    assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [true, 0])
    await pass(STUCK_AFTER_MS - STEP_MS, 1)
    assert.equal(liveness.isAlive(), true)
  }
})

test('with all slots busy a worker is alive, however long its jobs take and however many wait', async (t) => {
  const { liveness, pass } = scene(t)
  liveness.started()
  liveness.started()
  assert.equal(liveness.active(), 2)
  await pass(10 * STUCK_AFTER_MS, 1_000)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [true, 0])
  liveness.finished()
  assert.equal(liveness.active(), 1)
  await pass(STUCK_AFTER_MS, 1_000)
  assert.equal(liveness.isAlive(), false)
})

test('with nothing to fetch a worker is alive, and has its whole time when there is something', async (t) => {
  const { liveness, pass } = scene(t)
  await pass(10 * STUCK_AFTER_MS, 0)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [true, 0])
  await pass(STUCK_AFTER_MS - STEP_MS, 1)
  assert.equal(liveness.isAlive(), true)
})

test('not having fetched while Redis said nothing is no fault; a silence of three seconds is none yet', async (t) => {
  const { liveness, pass } = scene(t)
  await pass(STUCK_AFTER_MS - 3_500, 1)
  await pass(3_000)
  liveness.redisAnswered(1)
  assert.equal(liveness.stuckMs(), STUCK_AFTER_MS - 500)
  await pass(3_500)
  liveness.redisAnswered(1)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [true, 0])
})

test('a connection that says nothing, while Redis answers over a new one: dead until it is heard again', async (t) => {
  const { liveness, pass, looks } = scene(t)
  await pass(STUCK_AFTER_MS - STEP_MS)
  assert.deepEqual([liveness.isAlive(), looks()], [true, 0])
  await pass(STEP_MS)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs(), looks()], [false, STUCK_AFTER_MS, 1])
  liveness.redisAnswered(0)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [true, 0])
})

test('a Redis that answers nobody is waited for, alive, and asked again and again', async (t) => {
  const { liveness, redis, pass, looks } = scene(t)
  redis.answersOthers = false
  await pass(4 * STUCK_AFTER_MS)
  assert.deepEqual([liveness.isAlive(), liveness.stuckMs()], [true, 0])
  assert.ok(looks() > 10)
  redis.answersOthers = true
  await pass(STEP_MS)
  assert.equal(liveness.isAlive(), false)
})
