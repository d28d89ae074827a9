// What the rules of the line do to spikes, loops, pollers and hoards: the figures of the design.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { clients, World } from './line-simulation.ts'

type Kind = keyof typeof clients

/** Lets people log in within some time, and counts those who are in. */
function arrive(world: World, kind: Kind, people: number, withinMs: number) {
  const counts = { inside: 0 }
  for (let n = 0; n < people; n += 1)
    world.clock.after(withinMs * world.random(), () =>
      clients[kind](world, () => {
        counts.inside += 1
      }),
    )
  return counts
}

interface Circumstances {
  gateways?: number
  /** After 15 s there are so many times the workers. */
  joined?: number
  /** When Redis loses everything. */
  flushAtMs?: number
}

/** In ten seconds come `times` as many as are hashed in them. The time of the last one, as a multiple of what their work takes. */
function spike(kind: Kind, times: number, { gateways, joined = 1, flushAtMs }: Circumstances): number {
  const perSecond = 50
  const world = new World({ perSecond, gateways })
  const { clock, queue } = world
  const people = perSecond * times * 10
  const counts = arrive(world, kind, people, 10_000)
  if (joined > 1) clock.after(15_000, () => queue.scale(joined))
  if (flushAtMs !== undefined) clock.after(flushAtMs, () => queue.flush())
  clock.run(600_000, () => counts.inside === people)
  assert.deepEqual([counts.inside, world.expired], [people, 0])
  const before = joined > 1 ? perSecond * 15 : 0
  return clock.nowMs / ((before / perSecond + (people - before) / (perSecond * joined)) * 1_000)
}

/** Clients that log in again as soon as they are in. How many get in, as a share of what workers hash. */
function loops(numbers: Partial<Record<Kind, number>>, measured = 1) {
  const world = new World({ perSecond: 125, measured })
  const { clock } = world
  const inside = { watching: 0, plain: 0, polling: 0, throwing: 0 }
  for (const kind of ['watching', 'plain', 'polling', 'throwing'] as const) {
    const again = () => {
      if (clock.nowMs > 10_000) inside[kind] += 1 / (30 * 125)
      clock.after(1, () => clients[kind](world, again))
    }
    for (let n = 0; n < (numbers[kind] ?? 0); n += 1)
      clock.after(1_000 * world.random(), () => clients[kind](world, again))
  }
  clock.run(40_000)
  const { watching, plain, polling, throwing } = inside
  // Of the last ten seconds, the one with most logins: as a multiple of the mean.
  const late = world.logins.filter((atMs) => atMs >= 30_000)
  const perSecond = Array.from({ length: 10 }, (_, n) => late.filter((at) => Math.floor(at / 1_000) === 30 + n).length)
  return { ...inside, all: watching + plain + polling + throwing, most: Math.max(...perSecond) / (late.length / 10) }
}

const spikes: [what: string, kinds: Kind[], times: number[], Circumstances][] = [
  ['a spike', ['watching', 'throwing'], [2, 5, 10], {}],
  ['a spike', ['plain', 'polling'], [2, 10], {}],
  ['a spike at three gateways', ['watching', 'throwing'], [5], { gateways: 3 }],
  ['a spike, and workers that join', ['watching', 'plain', 'polling'], [12], { joined: 4 }],
  [
    'a spike, and a Redis that loses everything',
    ['watching', 'plain', 'polling', 'throwing'],
    [4],
    { flushAtMs: 9_000 },
  ],
]
for (const [what, kinds, manyTimes, circumstances] of spikes)
  for (const kind of kinds)
    for (const times of manyTimes)
      test(`${what}: of ${times} times the capacity, ${kind}, everyone gets in, the last one when the work is done`, () => {
        const last = spike(kind, times, circumstances)
        assert.ok(last >= 0.99 && last <= 1.1, `the last one at ${last} of the work`)
      })

for (const number of [100, 1_000, 3_000])
  test(`${number} clients that throw tickets away and retry at once get what workers can do, and do not fall into step`, () => {
    const { all, most } = loops({ throwing: number })
    assert.ok(all >= 0.94 && all <= 1.02, String(all))
    assert.ok(most <= 1.5, String(most))
  })

test('no hash begins in the last milliseconds of its client’s hold, also where the capacity is measured too high', () => {
  for (const measured of [1.3, 2]) {
    const { all } = loops({ throwing: 1_100 }, measured)
    assert.ok(all >= 0.94, `measured ${measured}: ${all}`)
  }
})

test('3,000 clients that follow their tickets get it all, and so do pollers', () => {
  for (const kind of ['watching', 'plain', 'polling'] as const) {
    const { all } = loops({ [kind]: 3_000 })
    assert.ok(all >= 0.97 && all <= 1.02, `${kind}: ${all}`)
  }
})

test('a hundred pollers are too few: Retry-After has whole seconds', () => {
  const { all } = loops({ polling: 100 })
  assert.ok(all >= 0.77 && all <= 0.82, String(all))
})

test('who throws tickets away gains little beside those who keep them, and takes nothing from the whole', () => {
  const mixed = loops({ watching: 300, plain: 300, polling: 300, throwing: 300 })
  assert.ok(mixed.all >= 0.97, JSON.stringify(mixed))
  assert.ok(Math.min(mixed.watching, mixed.plain, mixed.polling) >= 0.65 * mixed.throwing, JSON.stringify(mixed))
})

test('a hoard of 20,000 tickets that returns at once expires nobody, and keeps nobody out', () => {
  const world = new World({ perSecond: 125 })
  const hoarders = arrive(world, 'hoarding', 20_000, 2_000)
  world.clock.run(3_000)
  const people = arrive(world, 'watching', 3_000, 30_000)
  world.clock.run(250_000, () => hoarders.inside === 20_000 && people.inside === 3_000)
  assert.deepEqual([hoarders.inside, people.inside, world.expired], [20_000, 3_000, 0])
})
