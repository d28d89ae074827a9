// Which of several Redis gets a job, and when one can be used, as pure units.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Health, type Watched } from '../../src/servers/health.ts'
import { orderOf } from '../../src/servers/placing.ts'

const usable = (name: string, waitMs: number, adding = 0) => ({ name, waitMs, adding, isUsable: true })
const broken = (name: string) => ({ name, waitMs: 0, adding: 0, isUsable: false })

/** How often each is the first, of a thousand times. */
function firsts(candidates: readonly ReturnType<typeof usable>[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (let n = 0; n < 1_000; n += 1) {
    const order = orderOf(candidates).map(({ name }) => name)
    assert.deepEqual(order.toSorted(), candidates.map(({ name }) => name).sort())
    counts[order[0] ?? ''] = (counts[order[0] ?? ''] ?? 0) + 1
  }
  return counts
}

test('of two, the one with the shorter wait is taken, and either when they are alike', () => {
  assert.deepEqual(firsts([usable('short', 10), usable('long', 20)]), { short: 1_000 })
  const alike = firsts([usable('one', 10), usable('two', 10)])
  assert.ok((alike.one ?? 0) > 350 && (alike.two ?? 0) > 350, JSON.stringify(alike))
})

test('of two with the same wait, the one to which fewer jobs are being added is taken', () => {
  assert.deepEqual(firsts([usable('quick', 10, 1), usable('slow', 10, 2)]), { quick: 1_000 })
  assert.deepEqual(firsts([usable('quick', 20, 1), usable('slow', 10, 2)]), { slow: 1_000 })
})

test('of three, the longest is never taken, and the shortest not always: gateways with the same figures spread', () => {
  const taken = firsts([usable('short', 10), usable('middle', 20), usable('long', 30)])
  assert.equal(taken.long, undefined)
  assert.ok((taken.short ?? 0) > 550 && (taken.middle ?? 0) > 200, JSON.stringify(taken))
})

test('one that cannot be used, or has no worker, is not taken while another has', () => {
  const idle = usable('idle', Number.POSITIVE_INFINITY)
  assert.deepEqual(firsts([broken('broken'), idle, usable('busy', 9_000)]), { busy: 1_000 })
  assert.deepEqual(firsts([broken('broken'), idle]), { idle: 1_000 })
  assert.deepEqual(firsts([broken('broken')]), { broken: 1_000 })
})

interface State {
  isReady: boolean
  isKnown: boolean
  reading: number | undefined
  hasWorkers: boolean
  takesWrites: boolean
}

function healthOf(changes: Partial<State> = {}) {
  const state: State = {
    ...{ isReady: true, isKnown: true, reading: undefined, hasWorkers: true, takesWrites: true },
    ...changes,
  }
  let probes = 0
  let answered = Promise.resolve()
  const client: Watched = {
    isReady: () => state.isReady,
    load: () => ({ known: state.isKnown, jobsPerSecond: state.hasWorkers ? 10 : 0 }),
    reader: { readingUnderway: () => state.reading },
    probe: async () => {
      probes += 1
      await answered
      if (!state.takesWrites) throw new Error('OOM')
    },
  }
  const health = new Health(client)
  async function ticks(count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      health.tick()
      await new Promise(setImmediate)
    }
  }
  /** Lets probes go without an answer. */
  function silence(): void {
    answered = new Promise(() => undefined)
  }
  return { state, health, ticks, silence, probes: () => probes }
}

test('a Redis without a connection is not used from that moment on; its jobs are left to it for a moment', async () => {
  const { state, health, ticks } = healthOf()
  assert.ok(health.isUsable())
  state.isReady = false
  assert.equal(health.isUsable(), false)
  await ticks(1)
  assert.equal(health.isOut(), false)
  await ticks(1)
  assert.ok(health.isOut())
  state.isReady = true
  assert.ok(health.isUsable() && !health.isOut())
})

test('a Redis that leaves one reading without an answer is silent; answers that follow each other are none', async () => {
  const { state, health, ticks } = healthOf()
  for (state.reading = 1; state.reading < 20; state.reading += 1) await ticks(2)
  assert.ok(health.isUsable())
  await ticks(5)
  assert.equal(health.isUsable(), false)
  state.reading = undefined
  await ticks(1)
  assert.ok(health.isUsable())
})

test('a Redis that refused a write is used again when it takes one of our own', async () => {
  const { state, health, ticks } = healthOf({ takesWrites: false })
  health.refused()
  await ticks(20)
  assert.equal(health.isUsable(), false)
  assert.equal(health.unusableMs(), 2_000)
  state.takesWrites = true
  await ticks(2)
  assert.ok(health.isUsable())
  assert.equal(health.unusableMs(), 0)
})

test('a Redis whose workers are gone can be used, but its jobs are better off elsewhere', async () => {
  const { health, ticks } = healthOf({ hasWorkers: false })
  await ticks(2)
  assert.ok(health.isUsable() && !health.isServed() && health.isOut())
})

test('a Redis is asked to take a write only after it refused one, over a connection, and once at a time', async () => {
  const { state, health, ticks, silence, probes } = healthOf({ takesWrites: false })
  await ticks(3)
  assert.equal(probes(), 0)
  health.refused()
  state.isReady = false
  await ticks(3)
  assert.equal(probes(), 0)
  state.isReady = true
  await ticks(3)
  assert.equal(probes(), 3)
  silence()
  await ticks(3)
  assert.equal(probes(), 4)
})
