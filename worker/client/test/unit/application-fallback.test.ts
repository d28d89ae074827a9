// When the process beside an application takes over from the queue, by a simulated clock.
import assert from 'node:assert/strict'
import { LoadState } from '@spillway/queue/wait/load-state'
import type { Load } from '@spillway/queue/wire/capacity'
import type { Verdict } from '@spillway/queue/wire/job'
import { afterEach, beforeEach, test, vi } from 'vitest'
import type { Backend } from '../../src/application/backend.ts'
import { Fallback } from '../../src/application/fallback.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const unread = new LoadState().current()
const ready: Load = { ...unread, known: true, workers: 1, slots: 1, jobsPerSecond: 10, linePerSecond: 10 }
const log = { error() {}, warn() {}, info() {}, debug() {} }

function scene(verdict?: Verdict) {
  const given = { load: unread, opened: 0 }
  const backend = (by: Backend['by'], performed: Verdict | undefined): Backend => ({
    ...{ by, load: () => given.load, predictedWaitMs: () => 0, whenKnown: async () => undefined },
    perform: async () => performed,
    begin: () => assert.fail('no ticket is begun'),
    follow: () => assert.fail('no ticket is followed'),
    ...{ take: () => true, close: async () => undefined },
  })
  const openProcess = () => {
    given.opened += 1
    return backend('process', { kind: 'match' })
  }
  return { given, fallback: new Fallback({ queue: backend('workers', verdict), openProcess, log }) }
}

test('at a cold start a worker that is ready keeps the process from being forked, however late the first reading', async () => {
  const { given, fallback } = scene()
  vi.advanceTimersByTime(1_900)
  given.load = ready
  vi.advanceTimersByTime(10_000)
  assert.equal(given.opened, 0)
  await fallback.close()
})

test('half a second after the first reading without a worker the process takes over', async () => {
  const { given, fallback } = scene()
  vi.advanceTimersByTime(1_000)
  given.load = { ...unread, known: true }
  vi.advanceTimersByTime(500)
  assert.equal(given.opened, 0)
  vi.advanceTimersByTime(500)
  assert.deepEqual([given.opened, fallback.by], [1, 'process'])
  given.load = ready
  vi.advanceTimersByTime(250)
  assert.equal(fallback.by, 'workers')
  await fallback.close()
})

test('without a first reading the process takes over as well, because Redis is away', async () => {
  const { given, fallback } = scene()
  vi.advanceTimersByTime(3_000)
  assert.deepEqual([given.opened, fallback.by], [1, 'process'])
  await fallback.close()
})

test('a call that a worker dropped as expired is answered so: no process is started to hash it', async () => {
  const expired: Verdict = { kind: 'refused', code: 'expired' }
  const { given, fallback } = scene(expired)
  given.load = ready
  const options = { waitMs: 60_000, signal: undefined }
  assert.deepEqual(await fallback.perform('verify', { password: 'x', storedHash: null }, options), expired)
  assert.equal(given.opened, 0)
  await fallback.close()
})
