// When the gateway refuses what it cannot do in time, and when it must not, by a test's clock.
import assert from 'node:assert/strict'
import { setImmediate as flushed } from 'node:timers/promises'
import { test } from 'vitest'
import type { Priority, Work } from '../../src/plugins/load-shedding/load-shedder.ts'
import { type DeviceOf, Preference } from '../../src/plugins/load-shedding/preference.ts'
import { type Arrival, clocked, simulate } from '../simulated-gateway.ts'

/** The capacity of the simulated gateway in requests a second, at a millisecond each. */
const CAPACITY = 1_000

/** So many a second, evenly, from a moment on. */
function steadily(perSecond: number, fromMs: number, toMs: number, priority: Priority = 'new'): Arrival[] {
  const everyMs = 1_000 / perSecond
  return Array.from({ length: Math.floor((toMs - fromMs) / everyMs) }, (_, n) => ({
    atMs: fromMs + n * everyMs,
    priority,
  }))
}

for (const times of [1.5, 2, 4]) {
  test(`at ${times} times what it can do, 0.9 of that are served, and nobody waits long for either answer`, async () => {
    const ends = await simulate({ arrivals: steadily(CAPACITY * times, 0, 12_000) })
    const late = ends.filter(({ endMs }) => endMs > 4_000 && endMs <= 12_000)
    const served = late.filter(({ served }) => served).length / 8
    assert.ok(served >= 0.9 * CAPACITY, `${served} a second`)
    assert.ok(late.length > served * 8, 'and others are refused')
    const slowestMs = Math.max(...late.map(({ arrival, endMs }) => endMs - arrival.atMs))
    assert.ok(slowestMs < 1_700, `${slowestMs} ms`)
  })
}

test('a gateway of a fifth of the speed is not given so many requests that their time for a connection runs out', async () => {
  const perSecond = CAPACITY / 5
  const arrivals = steadily(perSecond * 4, 0, 15_000)
  const ends = await simulate({ arrivals, serveMs: () => 5, failsAfterMs: 2_000 })
  const late = ends.filter(({ endMs }) => endMs > 5_000 && endMs <= 15_000)
  const served = late.filter(({ served }) => served).length / 10
  assert.ok(served >= 0.85 * perSecond, `${served} a second`)
})

test('at half of what it can do, nobody is refused', async () => {
  const ends = await simulate({ arrivals: steadily(CAPACITY / 2, 0, 5_000) })
  assert.ok(ends.every(({ served }) => served))
})

test('a burst of six hundred is served as a whole', async () => {
  const burst = Array.from({ length: 600 }, (): Arrival => ({ atMs: 1_000, priority: 'new' }))
  const ends = await simulate({ arrivals: [...steadily(100, 0, 1_000), ...burst, ...steadily(100, 1_001, 4_000)] })
  assert.ok(ends.every(({ served }) => served))
})

test('a larger one is cut to that, and the others are told at once', async () => {
  const burst = Array.from({ length: 5_000 }, (): Arrival => ({ atMs: 0, priority: 'new' }))
  const ends = await simulate({ arrivals: burst })
  const served = ends.filter(({ served }) => served)
  assert.ok(served.length >= 600 && served.length <= 1_000, `${served.length}`)
  assert.ok(Math.max(...ends.map(({ endMs }) => endMs)) < 3_500)
})

const pauses: [what: string, pauses: { atMs: number; forMs: number }[]][] = [
  ['a laptop that slept for an hour', [{ atMs: 2_000, forMs: 3_600_000 }]],
  ['a process that was stopped for five seconds', [{ atMs: 2_000, forMs: 5_000 }]],
  ['collections of garbage', Array.from({ length: 8 }, (_, n) => ({ atMs: 500 + n * 500, forMs: 150 }))],
]
for (const [what, stops] of pauses) {
  test(`${what}: nobody is refused for it`, async () => {
    // Requests that come while it stands still must be few enough to be done soon after.
    const stopped = stops.reduce((sum, { forMs }) => sum + forMs, 0)
    const before = steadily(CAPACITY / 10, 0, 5_000)
    const arrivals = [...before, ...steadily(CAPACITY / 10, stopped + 2_000, stopped + 4_000)]
    const ends = await simulate({ arrivals, pauses: stops })
    assert.ok(ends.every(({ served }) => served))
  })
}

test('the first requests take twenty times as long: nobody is refused', async () => {
  const ends = await simulate({ arrivals: steadily(60, 0, 4_000), serveMs: (nth) => (nth < 60 ? 20 : 1) })
  assert.ok(ends.every(({ served }) => served))
})

for (const first of ['promised', 'known'] as const) {
  test(`while new requests are refused, ${first} ones are served, and before them`, async () => {
    const fresh = steadily(CAPACITY * 2, 0, 8_000)
    const preferred = steadily(CAPACITY / 4, 0, 8_000, first)
    const ends = await simulate({ arrivals: [...fresh, ...preferred] })
    const late = ends.filter(({ arrival }) => arrival.atMs > 4_000)
    const of = (priority: Priority) => late.filter(({ arrival }) => arrival.priority === priority)
    assert.ok(of(first).every(({ served }) => served))
    assert.ok(of('new').some(({ served }) => !served))
    const mean = (all: typeof ends) =>
      all.reduce((sum, { endMs, arrival }) => sum + endMs - arrival.atMs, 0) / all.length
    assert.ok(mean(of(first)) < mean(of('new').filter(({ served }) => served)))
  })
}

test('a flood of requests that claim to continue something leaves known devices and new logins a quarter', async () => {
  const flood = steadily(CAPACITY * 2, 0, 8_000, 'promised')
  const logins = [...steadily(CAPACITY / 8, 0, 8_000, 'known'), ...steadily(CAPACITY / 2, 0, 8_000)]
  const ends = await simulate({ arrivals: [...flood, ...logins] })
  const late = ends.filter(({ arrival }) => arrival.atMs > 4_000)
  const servedOf = (priority: Priority) => late.filter(({ arrival, served }) => arrival.priority === priority && served)
  const known = late.filter(({ arrival }) => arrival.priority === 'known')
  assert.equal(servedOf('known').length, known.length)
  const others = servedOf('known').length + servedOf('new').length
  assert.ok(others >= 0.2 * 4 * CAPACITY, `${others / 4} a second`)
  const promised = servedOf('promised').length
  assert.ok(promised >= 0.2 * 4 * CAPACITY, `${promised / 4} promised ones a second`)
})

test('a known device is preferred once a second, and all together for half of what the gateway does', () => {
  let nowMs = 0
  let perSecond = 0
  let asked = 0
  const deviceOf: DeviceOf = ({ host }) => {
    asked++
    return host?.startsWith('device') ? host : undefined
  }
  const preference = new Preference({ deviceOf, perSecond: () => perSecond, now: () => nowMs })
  const prefers = (headers: { host: string }) => preference.prefersDevice(headers)
  const ofMany = () => Array.from({ length: 100 }, (_, n) => prefers({ host: `device ${n}` })).filter(Boolean).length
  assert.ok(prefers({ host: 'device 0' }))
  assert.equal(prefers({ host: 'device 0' }), false)
  assert.equal(prefers({ host: 'stranger' }), false)
  assert.equal(ofMany(), 15)
  // Beyond that nobody is looked at.
  asked = 0
  assert.equal(ofMany(), 0)
  assert.equal(asked, 0)
  nowMs = 999
  assert.equal(ofMany(), 0)
  nowMs = 1_000
  perSecond = 80
  assert.equal(ofMany(), 40)
})

test('light requests are preferred for a tenth of what the gateway does, and take nothing from known devices', () => {
  let nowMs = 0
  const preference = new Preference({ deviceOf: ({ host }) => host, perSecond: () => 1_000, now: () => nowMs })
  const preferred = (prefers: (n: number) => boolean) =>
    Array.from({ length: 1_000 }, (_, n) => prefers(n)).filter(Boolean).length
  const light = () => preferred(() => preference.prefersLight())
  const devices = () => preferred((n) => preference.prefersDevice({ host: String(n) }))
  assert.deepEqual([light(), devices()], [100, 500])
  nowMs = 1_000
  assert.deepEqual([devices(), light()], [500, 100])
})

test('it matters who goes first while requests are queued, and for a second after one was refused', async () => {
  const { shedder, works, turnTo } = await full()
  assert.equal(shedder.isBehind(), false)
  const queued = shedder.begin('new', () => false)
  assert.equal(shedder.isBehind(), true)
  works[0]?.end(true)
  await queued
  assert.equal(shedder.isBehind(), false)
  void shedder.begin('new', () => false)
  await turnTo(1_600)
  assert.equal(shedder.isBehind(), true)
  await turnTo(4_000)
  assert.equal(shedder.isBehind(), false)
})

test('probes are answered whatever is refused', async () => {
  const flood = steadily(CAPACITY * 4, 0, 5_000)
  const probes = steadily(20, 0, 5_000, 'always')
  const ends = await simulate({ arrivals: [...flood, ...probes] })
  const probed = ends.filter(({ arrival }) => arrival.priority === 'always')
  assert.equal(probed.length, 100)
  assert.ok(probed.every(({ served }) => served))
})

test('two seconds after the end it is as if nothing had been', async () => {
  const flood = steadily(CAPACITY * 4, 0, 5_000)
  const after = Array.from({ length: 500 }, (): Arrival => ({ atMs: 7_000, priority: 'new' }))
  const ends = await simulate({ arrivals: [...flood, ...after] })
  assert.ok(ends.filter(({ arrival }) => arrival.atMs >= 7_000).every(({ served }) => served))
})

/** A shedder whose room is taken. */
async function full() {
  const { shedder, clock } = clocked(10)
  const works: Work[] = []
  for (let n = 0; n < 500; n++) works.push((await shedder.begin('new', () => false)) ?? assert.fail())
  return { shedder, works, turnTo: (ms: number) => clock.turnTo(ms) }
}

test('a request that is held for a worker makes room for another, and is counted again when it goes on', async () => {
  const { shedder, works } = await full()
  const waiting = shedder.begin('new', () => false)
  works[0]?.pause()
  assert.ok(await waiting)
  assert.equal(shedder.inHand(), 500)
  works[0]?.resume()
  assert.equal(shedder.inHand(), 501)
  for (const work of works) {
    work.end(true)
    work.end(true)
    work.resume()
    work.pause()
  }
  assert.equal(shedder.inHand(), 1)
})

test('a request whose client disconnected while it was queued is not begun', async () => {
  const { shedder, works } = await full()
  let isGone = false
  const gone = shedder.begin('new', () => isGone)
  const next = shedder.begin('new', () => false)
  isGone = true
  works[0]?.end(true)
  assert.equal(await gone, undefined)
  assert.ok(await next)
  assert.equal(shedder.isShedding(), false)
})

test('nobody waits in line for longer than a second and a half, whatever becomes of those before', async () => {
  const { shedder, turnTo } = await full()
  let ended = 0
  for (let n = 0; n < 10; n++) void shedder.begin('promised', () => false).then((work) => (ended += work ? 0 : 1))
  await turnTo(1_400)
  assert.equal(ended, 0)
  await turnTo(1_600)
  assert.equal(ended, 10)
  assert.ok(shedder.isShedding())
  await turnTo(4_000)
  assert.equal(shedder.isShedding(), false)
})

test('turns of the event loop that take too long, one after the other: what comes late in one is refused', async () => {
  const { shedder, clock } = clocked(10)
  /** Reads the heads of so many requests, at a millisecond each; gives the admitted ones. */
  async function turn(requests: number): Promise<number> {
    let admitted = 0
    for (let n = 0; n < requests; n++) {
      clock.nowMs++
      if (shedder.admits('new')) admitted++
    }
    await clock.endTurn(0)
    return admitted
  }
  for (let n = 0; n < 7; n++) assert.equal(await turn(250), 250)
  const admitted = await turn(250)
  assert.ok(admitted >= 100 && admitted <= 110, `${admitted}`)
})

const rooms = [
  { what: 'five hundred', connections: 10, answeredPerMs: 0, least: 500, most: 500 },
  { what: 'three for each connection to the database', connections: 200, answeredPerMs: 0, least: 600, most: 600 },
  { what: 'what is answered in a second', connections: 10, answeredPerMs: 1, least: 900, most: 1_100 },
]
test.each(rooms)('$what: so many are in hand at a time where that is the most', async (room) => {
  const { connections, answeredPerMs, least, most } = room
  const { shedder, clock } = clocked(connections)
  while (clock.nowMs < 3_000) {
    const begun = Array.from({ length: answeredPerMs }, () => shedder.begin('new', () => false))
    await clock.endTurn(0)
    for (const work of await Promise.all(begun)) work?.end(true)
    clock.nowMs++
  }
  for (let n = 0; n < 2_000; n++) void shedder.begin('new', () => false)
  assert.ok(shedder.inHand() >= least && shedder.inHand() <= most, `${shedder.inHand()}`)
})

test('requests that are answered in their turn of the event loop do not raise how many may be in hand', async () => {
  const { shedder, clock } = clocked(10)
  while (clock.nowMs < 3_000) {
    for (let n = 0; n < 5; n++) (await shedder.begin('promised', () => false))?.end(true)
    await clock.endTurn(1)
  }
  for (let n = 0; n < 2_000; n++) void shedder.begin('new', () => false)
  assert.equal(shedder.inHand(), 500)
})

test('in an overload a flood of promised requests begins little by little, for as long as it lasts', async () => {
  const { shedder, clock } = clocked(10)
  let begun = 0
  /** A turn in which so many are read, each of them answered at once where it begins. */
  async function turn(requests: number, lastsMs: number): Promise<number> {
    const before = begun
    for (let n = 0; n < requests; n++)
      void shedder
        .begin('promised', () => false)
        .then((work) => {
          begun++
          work?.end(true)
        })
    await flushed()
    await clock.endTurn(lastsMs)
    return begun - before
  }
  for (let n = 0; n < 15; n++) assert.equal(await turn(10, 110), 10)
  const first = await turn(400, 10)
  assert.ok(first <= 40, `${first}`)
  // Nothing takes more than a turn: at most 0.2 a millisecond begin, while some are held back.
  let later = 0
  for (let n = 0; n < 100; n++) later += await turn(2, 10)
  assert.ok(later >= 190 && later <= 240, `${later}`)
})

test('in an overload at most thirty-two requests begin in a turn of the event loop, and the others in the next ones', async () => {
  const { shedder, clock } = clocked(40)
  for (let n = 0; n < 16; n++) {
    const work = await shedder.begin('new', () => false)
    work?.end(true)
    await clock.endTurn(110)
  }
  const begun: (Work | undefined)[] = []
  for (let n = 0; n < 160; n++) void shedder.begin('known', () => false).then((work) => begun.push(work))
  const inHand: number[] = []
  for (let n = 0; n < 5; n++) {
    inHand.push(shedder.inHand())
    await clock.endTurn(1)
  }
  assert.deepEqual(inHand, [32, 64, 96, 120, 120])
  // Where nothing more is read as well.
  for (const work of begun.slice(0, 40)) work?.end(true)
  for (let n = 0; n < 2; n++) await clock.endTurn(1)
  assert.equal(begun.filter((work) => work !== undefined).length, 160)
})
