// What an installation costs, reckoned from a price.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { describePrice } from '../../src/describe.ts'
import { parseOptions } from '../../src/options.ts'
import { type MeasuredHash, priceOf, raised } from '../../src/price.ts'
import { size } from '../../src/sizing.ts'
import { demandBy, figures } from '../figures.ts'

const short = ['--spike-length', '5s']
const demand = demandBy('--logins-per-second', '100', '--hash', '9ms', '--cores-per-worker', '2', ...short)
const pricing = { perCoreHour: 0.036, spikesPerMonth: 10 }
const found = size(demand, figures)
const price = priceOf(demand, found, figures, pricing)
const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual - expected) < expected / 1_000, `${actual}, not ${expected}`)

const argon2id = { algorithm: 'argon2id', memoryKib: 19_456, time: 2, parallelism: 1 } as const
const bcrypt = { algorithm: 'bcrypt', cost: 12 } as const
const hashes: MeasuredHash[] = [
  { policy: argon2id, engine: 'fast', ms: 6 },
  { policy: bcrypt, engine: 'fast', ms: 75 },
  { policy: argon2id, engine: 'slow', ms: 9 },
  { policy: bcrypt, engine: 'slow', ms: 240 },
]

test('a thousand logins cost the processor time of their hashes and of all that is beside', () => {
  // 9 ms of hash, 2.6 ms beside: 11.6 s, of which an hour costs 0.036.
  near(price.thousandLogins(9), (11.6 * 0.036) / 3_600)
})

test('a month of the minimum costs its workers and gateways, without Redis and PostgreSQL', () => {
  assert.equal(price.minimumCores, found.slots + found.gateways)
  near(price.minimumMonth, (found.slots + found.gateways) * 730 * 0.036)
  near(price.storeMonth, (1 + 1) * 730 * 0.036)
})

test('several Redis are a core each, and named with what they cost', () => {
  const more = demandBy('--logins-per-second', '2000', ...short)
  const size3 = size(more, figures)
  const price3 = priceOf(more, size3, figures, pricing)
  assert.equal(price3.storeCores, 3 + Math.ceil(size3.postgresCores))
  near(price3.redisMonth, 3 * 730 * 0.036)
  assert.match(
    describePrice(pricing, more, price3, hashes),
    /, beside \d+ for 3 Redis servers \(78\.84\) and PostgreSQL \(\d+ cores\)$/m,
  )
  assert.match(describePrice(pricing, demand, price, hashes), / for Redis and PostgreSQL \(2 cores\)$/m)
})

test('a spike costs the workers that it adds until they have left, and less than keeping them', () => {
  const added = (found.spike.workers - found.workers) * 2
  near(price.aSpike, (added * 0.036 * (found.spike.scaled.overAfterS + 360)) / 3_600)
  near(price.spikesMonth, 10 * price.aSpike)
  near(price.preScaledMonth, added * 0.036 * 730)
  assert.ok(price.spikesMonth < price.preScaledMonth)
})

test('the longest hash for the same money adds no worker, and one that is longer does', () => {
  const workers = (hashMs: number) => {
    const other = size({ ...demand, hashMs }, figures)
    return [other.workers, other.spike.workers]
  }
  assert.ok(price.affordableHashMs >= 9)
  assert.deepEqual(workers(price.affordableHashMs), [found.workers, found.spike.workers])
  assert.notDeepEqual(workers(price.affordableHashMs * 1.002), [found.workers, found.spike.workers])
})

test('the cost that a faster engine affords: memory by the time, and steps of bcrypt that double it', () => {
  assert.deepEqual(raised(argon2id, 1.5), { ...argon2id, memoryKib: 28_672 })
  assert.equal(raised(argon2id, 1.01), undefined)
  assert.deepEqual(raised(bcrypt, 3.2), { algorithm: 'bcrypt', cost: 13 })
  assert.deepEqual(raised(bcrypt, 4.1), { algorithm: 'bcrypt', cost: 14 })
  assert.equal(raised(bcrypt, 1.9), undefined)
})

test('the description has a line for each algorithm and engine, and what could be raised', () => {
  const text = describePrice(pricing, demand, price, hashes)
  for (const line of [
    /^At 0\.036 a core hour:$/m,
    /argon2id, 19 MiB, 2 passes, 1 lane +fast +6\.0 ms +0\.000086$/m,
    /bcrypt, cost 12 +slow +240\.0 ms +0\.0024$/m,
    /^What slow takes for argon2id, 19 MiB, 2 passes, 1 lane, fast takes for argon2id, 28 MiB, 2 passes, 1 lane\.$/m,
    /^What slow takes for bcrypt, cost 12, fast takes for bcrypt, cost 13\.$/m,
  ])
    assert.match(text, line)
})

test('a price is asked for by its option alone, and refused where it is none', () => {
  const args = ['--logins-per-second', '5']
  assert.equal(parseOptions(args)?.pricing, undefined)
  const priced = parseOptions([...args, '--price-per-core-hour', '0.04'])
  assert.deepEqual(priced?.pricing, { perCoreHour: 0.04, spikesPerMonth: 30 })
  assert.throws(() => parseOptions([...args, '--price-per-core-hour', 'much']), /a number greater than 0, not "much"/)
})
