// The calculator, from arguments to sentences.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'vitest'
import { figures as measured, sourceOf } from '../../src/figures.ts'
import { demandOf, parseOptions } from '../../src/options.ts'
import { describe, size } from '../../src/sizing.ts'
import { CHART_LIMITS, spikeCost } from '../../src/spike.ts'
import { demandBy, figures } from '../figures.ts'

/** Everyone is held for as long as it takes. */
const patient = { loginWaitMs: 600_000, ticketTtlMs: 600_000, maxOutstanding: 100_000 }
/** Of 160 a second 80 are served, for 10 s: 800 are left, and become fewer by 60 a second. */
const spike = {
  ...{ slotMs: 50, slots: 4, laterSlots: 4, scaleS: 0, limits: patient },
  ...{ perSecond: 20, spikePerSecond: 160, spikeS: 10 },
}
const OVER_AFTER_S = 10 + 800 / 60

test('the depth of a spike is the arrivals beyond the departures', () => {
  const cost = spikeCost(spike)
  assert.ok(Math.abs(cost.deepest - 800) < 2)
  assert.ok(Math.abs(cost.overAfterS - OVER_AFTER_S) < 0.1)
  const never = spikeCost({ ...spike, slotMs: 500, perSecond: 9, spikePerSecond: 9, spikeS: 1 })
  assert.equal(never.overAfterS, Number.POSITIVE_INFINITY)
})

test('slots that are added during a spike shorten the waits of those who wait already', () => {
  const station = { ...spike, slotMs: 100, slots: 2, laterSlots: 20, scaleS: 15 }
  const cost = spikeCost({ ...station, perSecond: 10, spikePerSecond: 100, spikeS: 60 })
  assert.ok(Math.abs(cost.deepest - 80 * 15) < 2)
  // The last to come before the slots do finds 1,200 ahead, which then go at 200 a second.
  assert.ok(cost.longestWaitS > 6 && cost.longestWaitS < 15)
})

test('newcomers overtake, and promote those that have waited longest', () => {
  const cost = spikeCost({ ...spike, limits: { ...patient, loginWaitMs: 5_000 } })
  // Beyond 5 s of work, 400 jobs, there are tickets for who does not overtake; a third of the 80 a
  // second go to those who do.
  assert.ok(cost.ticketed > 500 && cost.ticketed < 700, String(cost.ticketed))
  // First come first served, the last would wait for 800 jobs, or 10 s. Being overtaken, they wait
  // longer, and not for ever.
  assert.ok(cost.longestWaitS > 10 && cost.longestWaitS < 20, String(cost.longestWaitS))
  // In which order people are served does not change how much there is to do.
  assert.ok(Math.abs(cost.overAfterS - OVER_AFTER_S) < 0.1, String(cost.overAfterS))
})

test('a client that is refused comes back, and is served', () => {
  const cost = spikeCost({ ...spike, limits: { ...patient, maxOutstanding: 400 } })
  assert.ok(Math.abs(cost.deepest - 400) < 3, String(cost.deepest))
  assert.ok(cost.refused > 350, String(cost.refused))
  assert.ok(Math.abs(cost.overAfterS - OVER_AFTER_S) < 0.2, String(cost.overAfterS))
})

test('cores are whole workers, and enough for the wait that was asked for', () => {
  const wait = ['--logins-per-second', '500', '--p99-wait', '50ms']
  const demand = demandBy(...wait, '--cores-per-worker', '4', '--spike-length', '5s')
  const found = size(demand, figures)
  assert.equal(found.slots % 4, 0)
  assert.equal(found.workers, found.slots / 4)
  assert.ok(found.p99WaitMs <= 50)
  assert.match(describe(demand, found, figures), /autoscaling.maxReplicas: \d+/)
})

/** By a spike of ten times as many: one Redis server ends at 7,000 logins a second. */
const described = (loginsPerSecond: string) => {
  const demand = demandBy('--logins-per-second', loginsPerSecond, '--spike-length', '5s')
  return describe(demand, size(demand, figures), figures)
}

test('as long as one Redis is enough, several are not spoken of', () => {
  assert.match(described('700'), /^Redis +70 % of a core in the spike, \d+ MiB with the queue full$/m)
  assert.doesNotMatch(described('700'), /several|One Redis/)
})

test('the limit of one Redis is stated, how many are needed, and the values of the chart for them', () => {
  assert.match(described('701'), /^redis\.addresses: \[redis-1:6379, redis-2:6379\]$/m)
  const three = described('2000')
  assert.match(three, /^Redis +3 side by side, 67 % of a core each in the spike, \d+ MiB each with the queue full$/m)
  assert.match(three, /^redis\.mode: several$/m)
  assert.match(three, /^redis\.addresses: \[redis-1:6379, redis-2:6379, redis-3:6379\]$/m)
  assert.match(three, /One Redis server carries about 7000 logins a second: this spike needs 3 side by side/)
  assert.match(described('4000'), /^redis\.addresses: \[redis-1:6379, .* redis-4:6379, \.\.\., redis-6:6379\]$/m)
})

test('the example of the page is what pnpm size prints', async () => {
  const page = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  const [, args = '', printed] = /^\$ pnpm size (.*)\n([^`]*)\n```$/m.exec(page) ?? []
  const options = parseOptions(args.split(' '))
  const demand = options && demandOf(options, { hashMs: measured.hashMs, hashSource: sourceOf(measured) })
  assert.ok(demand)
  assert.equal(printed, describe(demand, size(demand, measured), measured))
})

test('an argument that cannot be read is refused with what it should be', () => {
  assert.throws(() => demandBy(), /Say how many logins a second/)
  assert.throws(
    () => demandBy('--logins-per-second', '-3'),
    /^UserError: --logins-per-second takes a number greater than 0, not "-3"\.$/,
  )
  assert.throws(() => demandBy('--logins-per-second', '5', '--p99-wait', '-1s'), /a time such as .* not "-1s"/)
  assert.throws(() => demandBy('--logins-per-second', '5', '--p99-wait', '1'), /a time such as 250ms or 1s, not "1"/)
  assert.throws(() => demandBy('--logins', '5'), /--logins/)
})

test('a load that no installation carries is refused, and what would carry it is said', () => {
  const sized = (...args: string[]) => size(demandBy('--logins-per-second', ...args), figures)
  assert.throws(
    () => sized('10000000000'),
    /100,000,000,000 logins a second .* cores of one PostgreSQL server.*several installations/,
  )
  assert.throws(() => sized('20000', '--hash', '60s'), /more than 100,000 cores of workers/)
  assert.throws(() => sized('20000', '--spike', '100'), /2,000,000 logins a second/)
})

test('a size says which machine, engine and day the time of a hash is of', () => {
  assert.match(
    described('700'),
    /^The time of a hash is of a machine, by an engine, measured on 2026-11-21: --calibrate/m,
  )
  const given = demandBy('--logins-per-second', '700', '--hash', '20ms')
  assert.match(describe(given, size(given, figures), figures), /^The time of a hash is as given by --hash\.$/m)
})

test('the model of a spike uses the limits of the chart', async () => {
  const values = await readFile(new URL('../../../helm/spillway/values.yaml', import.meta.url), 'utf8')
  const [loginWaitMs, ticketTtlMs, maxOutstanding] = ['loginWaitMs', 'ticketTtlMs', 'maxOutstanding'].map((name) =>
    Number(new RegExp(`^  ${name}: (\\d+)$`, 'm').exec(values)?.[1]),
  )
  assert.deepEqual(CHART_LIMITS, { loginWaitMs, ticketTtlMs, maxOutstanding })
})
