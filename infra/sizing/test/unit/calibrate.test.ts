// The cost that is proposed: for machines of several speeds, which are reckoned.
import assert from 'node:assert/strict'
import { UserError } from '@spillway/infra/processes/command-line'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import { test } from 'vitest'
import { calibrate, proposeArgon2id, proposeBcrypt } from '../../src/calibrate.ts'
import type { HashCost, MeasureHash } from '../../src/hash-meter.ts'
import { argon2id, describeMinimums, OWASP_ARGON2_KIB } from '../../src/minimums.ts'
import { parseOptions } from '../../src/options.ts'
import { figures } from '../figures.ts'

const MIB = 1_024

/** A machine on which a pass over a MiB takes so long, and twice as long beyond its caches. */
function machine({ msOfMib, cacheMib = 64 }: { msOfMib: number; cacheMib?: number }): MeasureHash {
  return async (policy: HashPolicy): Promise<HashCost> => {
    const ms =
      policy.algorithm === 'bcrypt'
        ? msOfMib * 2 ** policy.cost
        : (policy.memoryKib / MIB) * policy.time * msOfMib * (policy.memoryKib / MIB > cacheMib ? 2 : 1)
    return { aloneMs: ms, fullMs: ms * 0.8 }
  }
}

/** As `46 MiB, 1`; with the time it takes. */
async function proposed(targetMs: number, memoryMib: number, measure: MeasureHash) {
  const { policy, aloneMs, isOverTarget } = await proposeArgon2id({ targetMs, memoryKib: memoryMib * MIB }, measure)
  assert.ok(policy.algorithm === 'argon2id' && policy.parallelism === 1)
  return { cost: `${policy.memoryKib / MIB} MiB, ${policy.time}`, aloneMs, isOverTarget }
}

test('all the memory there is, and as many passes over it as the target allows', async () => {
  assert.deepEqual(await proposed(50, 32, machine({ msOfMib: 0.25 })), {
    cost: '32 MiB, 6',
    aloneMs: 48,
    isOverTarget: false,
  })
})

test('where one pass takes too long there is less memory, down to where OWASP asks for a second', async () => {
  assert.deepEqual((await proposed(50, 512, machine({ msOfMib: 1 }))).cost, '50 MiB, 1')
  assert.deepEqual((await proposed(50, 512, machine({ msOfMib: 1.2 }))).cost, '20 MiB, 2')
})

test('the proposal takes no longer than the target although memory beyond the caches is slower', async () => {
  for (const cacheMib of [20, 40, 80]) {
    for (const msOfMib of [0.05, 0.2, 0.5]) {
      const { aloneMs, cost } = await proposed(50, 256, machine({ msOfMib, cacheMib }))
      assert.ok(aloneMs <= 52 && aloneMs > 20, `${cost} takes ${aloneMs} ms, with ${cacheMib} MiB of caches`)
    }
  }
})

test("OWASP's minimum is the least, and said to be over the target where it is", async () => {
  const slow = machine({ msOfMib: 10 })
  assert.deepEqual(await proposed(50, 512, slow), { cost: '19 MiB, 2', aloneMs: 380, isOverTarget: true })
  assert.deepEqual((await proposed(50, 12, slow)).cost, '12 MiB, 3')
  assert.deepEqual((await proposed(50, 7, slow)).cost, '7 MiB, 5')
  assert.deepEqual((await proposed(50, 7, machine({ msOfMib: 0.5 }))).cost, '7 MiB, 14')
})

test('bcrypt gets the highest cost within the target, and 10 at least', async () => {
  const cost = async (targetMs: number) => {
    const { policy, isOverTarget } = await proposeBcrypt({ targetMs }, machine({ msOfMib: 0.05 }))
    return policy.algorithm === 'bcrypt' && [policy.cost, isOverTarget]
  }
  assert.deepEqual(await cost(40), [10, true])
  assert.deepEqual(await cost(52), [10, false])
  assert.deepEqual(await cost(250), [12, false])
  assert.deepEqual(await cost(1_000_000), [17, false])
})

test('too little memory and options that are none are refused with the way out', async () => {
  const wrong = [['--target', '50'], ['--memory', '512'], ['--memory', '0Mi'], ['--algorithm', 'md5'], ['--what']]
  for (const args of wrong) assert.throws(() => parseOptions(['--calibrate', ...args]), UserError, args.join(' '))
  const tooLittle = parseOptions(['--calibrate', '--memory', '129Mi'])?.calibration
  assert.ok(tooLittle)
  await assert.rejects(calibrate(tooLittle, { HASH_ENGINE: 'packages' }), /must be 142Mi or more/)
})

test("of OWASP's minimums the one with the most logins is taken that has room for full batches", () => {
  const fullMs = [9, 19, 24, 9, 4]
  const measured = OWASP_ARGON2_KIB.map((kib, n) => ({
    policy: argon2id(kib, n + 1),
    width: n === 0 ? 1 : 4,
    fullMs: fullMs[n] ?? 0,
  }))
  const bcrypt = { policy: { algorithm: 'bcrypt', cost: 10 }, width: 8, fullMs: 1 } as const
  const lines = (memoryMib: number) =>
    describeMinimums(
      [...measured, bcrypt],
      2,
      { coresPerWorker: 1, memoryMib, targetMs: 50, algorithm: 'argon2id' },
      figures,
    )
  // Two slots of 4 + 1 ms; 128 MiB, and 7 for each of four, twice.
  assert.match(lines(256).join('\n'), /7 MiB, 5 passes, 1 lane +400\.0 +184 MiB/)
  assert.match(lines(256).at(-1) ?? '', /^For the most logins, take argon2id, 7 MiB, 5 passes/)
  assert.match(lines(183).at(-1) ?? '', /^No minimum of argon2id has full batches in 183 MiB/)
})
