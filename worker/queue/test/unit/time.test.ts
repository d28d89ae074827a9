// Redis's clock as a process knows it, and waiting that ends.
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { within } from '@spillway/common/within'
import { test, vi } from 'vitest'
import { RedisClock } from '../../src/redis/clock.ts'

test('a reading tells the time of the middle between question and answer, and its answer is passed on', async () => {
  const clock = new RedisClock()
  const times = [1_000, 1_100, 5_000]
  vi.spyOn(performance, 'now').mockImplementation(() => times.shift() ?? 5_000)
  assert.equal(await clock.synchronize(async () => 70_000, Number), 70_000)
  // At 1,050 of this machine it was 70,000 there.
  assert.equal(clock.now(), 73_950)
})

test('a reading that took longer than a tenth of a second replaces no earlier one, and the first is taken however long it took', async () => {
  const clock = new RedisClock()
  let nowMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const read = (timeThere: number, tookMs: number) =>
    clock.synchronize(
      async () => {
        nowMs += tookMs
        return timeThere
      },
      (time) => time,
    )
  await read(70_000, 1_000)
  assert.equal(clock.now(), 70_500)
  await read(90_000, 101)
  assert.equal(clock.now(), 70_601)
  await read(90_000, 100)
  assert.equal(clock.now(), 90_050)
})

test('when the time is up there is nothing, and not before', async (t) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  t.onTestFinished(() => void vi.useRealTimers())
  let outcome: unknown = 'waiting'
  void within(100, new Promise(() => undefined)).then((value) => {
    outcome = value
  })
  vi.advanceTimersByTime(99)
  await turn()
  assert.equal(outcome, 'waiting')
  vi.advanceTimersByTime(1)
  await turn()
  assert.equal(outcome, undefined)
})

test('a signal ends the wait at once, also one that has fired before', async () => {
  const never = new Promise(() => undefined)
  const caller = new AbortController()
  const waiting = within(60_000, never, caller.signal)
  caller.abort()
  assert.equal(await waiting, undefined)
  assert.equal(await within(60_000, never, AbortSignal.abort()), undefined)
})

test('a wait that is over leaves neither a timer nor a listener', async () => {
  const { signal } = new AbortController()
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
  const before = timers()
  const added = vi.spyOn(signal, 'addEventListener')
  const removed = vi.spyOn(signal, 'removeEventListener')
  assert.equal(await within(60_000, Promise.resolve('done'), signal), 'done')
  await assert.rejects(within(60_000, Promise.reject(new Error('failed')), signal))
  assert.equal(timers(), before)
  assert.deepEqual(removed.mock.calls, added.mock.calls)
  assert.equal(added.mock.calls.length, 2)
})
