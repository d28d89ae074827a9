// What an overloaded gateway refuses, by a simulated clock; how refusals are held.
import assert from 'node:assert/strict'
import { pacedMs } from '@spillway/queue/order'
import { fastify } from 'fastify'
import { afterEach, test, vi } from 'vitest'
import { problemPlugin } from '../../src/http/problems.ts'
import { OverloadGuard, overloadPlugin, Pace, UPDATE_MS, type Work } from '../../src/overload.ts'

const STEP_MS = 10
/** Requests that the simulated gateway does in a second. */
const CAPACITY = 1_000

/** Numbers from 0 to 1, the same each time. */
function numbers(): () => number {
  let state = 1
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state / 2 ** 31
  }
}

/** A gateway with one queue, first in, first out. */
class SimulatedGateway {
  readonly guard: OverloadGuard
  readonly #queue: Work[] = []
  #nowMs = 0

  /** @param bottleneck whether requests wait for its event loop, or for connections to the database */
  constructor(bottleneck: 'event loop' | 'database') {
    const delayMs = () => (this.#queue.length / CAPACITY) * 1_000
    this.guard = new OverloadGuard({
      random: numbers(),
      loopDelayMs: () => (bottleneck === 'event loop' ? delayMs() : 0),
    })
  }

  /** Runs for so long at this load, in requests a second. Returns the shares of both kinds that were let in. */
  run(seconds: number, load: { fresh: number; continued: number }) {
    const sent = { new: 0, continued: 0 }
    const letIn = { new: 0, continued: 0 }
    let done = 0
    const endMs = this.#nowMs + seconds * 1_000
    for (let n = 1; this.#nowMs < endMs; n++) {
      this.#nowMs += STEP_MS
      for (const [priority, perSecond] of [
        ['new', load.fresh],
        ['continued', load.continued],
      ] as const) {
        for (; sent[priority] < (perSecond * n * STEP_MS) / 1_000; sent[priority]++) {
          const work = this.guard.begin(priority)
          if (work === undefined) continue
          letIn[priority]++
          this.#queue.push(work)
        }
      }
      for (const work of this.#queue.splice(0, (CAPACITY * STEP_MS) / 1_000)) {
        work.end()
        done++
      }
      if (this.#nowMs % UPDATE_MS === 0) this.guard.update(UPDATE_MS)
    }
    const share = (priority: 'new' | 'continued') => (sent[priority] === 0 ? 1 : letIn[priority] / sent[priority])
    return { fresh: share('new'), continued: share('continued'), perSecond: done / seconds }
  }
}

const all = { fresh: 1, continued: 1 }
const calm = { fresh: 500, continued: 200 }

for (const bottleneck of ['event loop', 'database'] as const) {
  test(`below its capacity nothing is refused, nor in a burst of a second (${bottleneck})`, () => {
    const gateway = new SimulatedGateway(bottleneck)
    for (const [seconds, load] of [
      [5, calm],
      [1, { fresh: 3_000, continued: 300 }],
      [0.5, calm],
    ] as const) {
      const { fresh, continued } = gateway.run(seconds, load)
      if (seconds !== 0.5) assert.deepEqual({ fresh, continued }, all)
    }
  })

  test(`in an overload new requests are refused, what continues something is not, and the gateway is busy (${bottleneck})`, () => {
    const gateway = new SimulatedGateway(bottleneck)
    gateway.run(2, calm)
    gateway.run(10, { fresh: 3_000, continued: 300 })
    const { fresh, continued, perSecond } = gateway.run(10, { fresh: 3_000, continued: 300 })
    assert.equal(continued, 1)
    assert.ok(fresh > 0.2 && fresh < 0.26, `${fresh} of the new requests were let in`)
    assert.ok(perSecond > 0.98 * CAPACITY, `${perSecond} a second`)
    assert.ok(gateway.guard.delayMs() < 1_300, `a delay of ${gateway.guard.delayMs()} ms`)
    assert.ok(gateway.guard.isRefusing())
  })

  test(`a flood of what claims to continue something is refused in part, and not done at any delay (${bottleneck})`, () => {
    const gateway = new SimulatedGateway(bottleneck)
    gateway.run(10, { fresh: 300, continued: 3_000 })
    const { continued, perSecond } = gateway.run(10, { fresh: 300, continued: 3_000 })
    assert.ok(continued > 0.3 && continued < 0.36, `${continued} were let in`)
    assert.ok(perSecond > 0.98 * CAPACITY, `${perSecond} a second`)
    assert.ok(gateway.guard.delayMs() < 1_300, `a delay of ${gateway.guard.delayMs()} ms`)
  })

  test(`it recovers by itself within three seconds, also from a flood and when nobody comes (${bottleneck})`, () => {
    for (const load of [
      { fresh: 5_000, continued: 0 },
      { fresh: 1_000, continued: 5_000 },
    ]) {
      for (const after of [calm, { fresh: 0, continued: 0 }]) {
        const gateway = new SimulatedGateway(bottleneck)
        gateway.run(20, load)
        assert.ok(gateway.guard.isRefusing())
        gateway.run(3, after)
        assert.ok(!gateway.guard.isRefusing())
        const { fresh, continued } = gateway.run(5, calm)
        assert.deepEqual({ fresh, continued }, all)
      }
    }
  })
}

test('probes are always answered, and requests that are held for a worker are no work', () => {
  const guard = new OverloadGuard({ loopDelayMs: () => 10_000, random: () => 0 })
  const works = Array.from({ length: 100 }, () => guard.begin('new'))
  for (let n = 0; n < 100; n++) guard.update(UPDATE_MS)
  assert.equal(guard.begin('new'), undefined)
  assert.equal(guard.begin('continued'), undefined)
  works.push(guard.begin('always'))
  assert.equal(guard.inHand(), 101)
  for (const work of works) work?.pause()
  assert.equal(guard.inHand(), 0)
  for (const work of works) {
    work?.resume()
    for (let n = 0; n < 2; n++) work?.end()
    work?.resume()
  }
  assert.equal(guard.inHand(), 0)
})

test('a gateway whose processor is taken by others refuses nothing while it has little to do', () => {
  const guard = new OverloadGuard({ loopDelayMs: () => 1_000, random: () => 0 })
  for (let n = 0; n < 50; n++) guard.begin('new')
  for (let n = 0; n < 100; n++) guard.update(UPDATE_MS)
  assert.ok(!guard.isRefusing())
})

/** A refusal takes this share of the work of another request. */
const REFUSAL_COST = 0.25

/**
 * Lets connections wait to be accepted at this load, in requests a second. Returns the shares that
 * were let in, and the longest wait in milliseconds.
 */
function accept(
  guard: OverloadGuard,
  clock: { nowMs: number; waiting: number },
  seconds: number,
  load: { fresh: number; continued: number },
) {
  const waiting: { priority: 'new' | 'continued'; sinceMs: number }[] = []
  const sent = { new: 0, continued: 0 }
  const letIn = { new: 0, continued: 0 }
  let longestMs = 0
  let budget = 0
  for (const endMs = clock.nowMs + seconds * 1_000; clock.nowMs < endMs || waiting.length > 0; ) {
    clock.nowMs += STEP_MS
    if (clock.nowMs <= endMs) {
      for (let n = 0; n < (load.fresh * STEP_MS) / 1_000; n++) waiting.push({ priority: 'new', sinceMs: clock.nowMs })
      for (let n = 0; n < (load.continued * STEP_MS) / 1_000; n++)
        waiting.push({ priority: 'continued', sinceMs: clock.nowMs })
    }
    for (budget = (CAPACITY * STEP_MS) / 1_000; budget > 0; ) {
      const next = waiting.shift()
      if (next === undefined) break
      longestMs = Math.max(longestMs, clock.nowMs - next.sinceMs)
      sent[next.priority]++
      const work = guard.begin(next.priority)
      budget -= work === undefined ? REFUSAL_COST : 1
      if (work === undefined) continue
      letIn[next.priority]++
      work.end()
    }
    clock.waiting = waiting.length
    if (clock.nowMs % UPDATE_MS === 0) guard.update(UPDATE_MS)
  }
  return { fresh: letIn.new / sent.new, continued: letIn.continued / sent.continued, longestMs }
}

test('while connections wait to be accepted, new requests are refused, and continued ones are not', () => {
  const clock = { nowMs: 0, waiting: 0 }
  const guard = new OverloadGuard({
    random: numbers(),
    loopDelayMs: () => 0,
    acceptDelayMs: () => (clock.waiting / CAPACITY) * 1_000,
  })
  assert.deepEqual(accept(guard, clock, 5, calm), { ...all, longestMs: 0 })
  const { fresh, continued, longestMs } = accept(guard, clock, 20, { fresh: 2_000, continued: 200 })
  assert.equal(continued, 1)
  assert.ok(fresh > 0.15 && fresh < 0.5, `${fresh} of the new requests were let in`)
  assert.ok(longestMs < 4_000, `a connection waited for ${longestMs} ms`)
  accept(guard, clock, 1, calm)
  assert.deepEqual(accept(guard, clock, 5, calm), { ...all, longestMs: 0 })
  const flood = accept(guard, clock, 30, { fresh: 0, continued: 3_500 })
  assert.ok(flood.longestMs < 10_000, `a connection waited for ${flood.longestMs} ms`)
})

test('a gateway that was idle before a burst lets those that it refuses come back at the pace of the workers', async (t) => {
  const guard = new OverloadGuard({ random: () => 0, loopDelayMs: () => 0, acceptDelayMs: () => 10_000 })
  for (let n = 0; n < 20; n++) guard.update(UPDATE_MS)
  const app = fastify()
  t.onTestFinished(() => app.close())
  await app.register(problemPlugin)
  const options = { guard, holdMs: 0, jobsPerSecond: () => 50, isDraining: () => false }
  await app.register(overloadPlugin, options)
  app.get('/', async () => '')
  const answers = await Promise.all(Array.from({ length: 100 }, () => app.inject('/')))
  assert.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([503]))
  const longestS = Math.max(...answers.map(({ headers }) => Number(headers['retry-after'])))
  assert.ok(longestS >= 2 && longestS <= 4, `Retry-After of ${longestS} s`)
})

afterEach(() => {
  vi.useRealTimers()
})

test('a refusal is held for four seconds, less a random quarter; of too many the oldest is given', () => {
  assert.deepEqual([pacedMs(8_000, () => 1), pacedMs(8_000, () => 0), pacedMs(100, () => 1)], [4_000, 3_000, 100])
  vi.useFakeTimers()
  const given: number[] = []
  const pace = new Pace(() => 3_000, 10)
  for (let n = 0; n < 12; n++) pace.hold(() => given.push(n))
  assert.deepEqual(given, [0, 1])
  vi.advanceTimersByTime(2_999)
  assert.equal(given.length, 2)
  vi.advanceTimersByTime(1)
  assert.equal(given.length, 12)
  pace.hold(() => given.push(-1))
  pace.close()
  assert.equal(given.at(-1), -1)
})
