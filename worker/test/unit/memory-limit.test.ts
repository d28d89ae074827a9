// What asks for more memory than a worker has: it is refused before it is begun, whoever asks.
import assert from 'node:assert/strict'
import { withResolvers } from '@spillway/common/within'
import { test } from 'vitest'
import { firebaseProject } from '../../src/hashing/formats/settings.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { UnsupportedHashError } from '../../src/hashing/methods/recipe.ts'
import { performVerify } from '../../src/hashing/perform.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { hashingMemory, policyKib, Threads } from '../../src/hashing/threads.ts'
import { firebaseExample } from '../format-vectors.ts'

const MIB = 1_024 * 1_024
const cost = { memoryKib: 2_048, time: 1, parallelism: 1 }
const least = { memoryKib: 8, time: 1, parallelism: 1 }
const tooMuch = { ...cost, algorithm: 'argon2id', memoryKib: 2_049 } as const
const hasher = await Hasher.load(argon2idPolicy(cost), { slotKib: 2_048 })

test('each thread has its share of what the limit leaves beside the program, and packages have one; where that is too little for the policy there are fewer', () => {
  const shared = (mib: number, slots: number, { policyKib = 19_456, isShared = false } = {}) => {
    const memory = hashingMemory({ slots, policyKib, isShared, limitBytes: mib * MIB })
    return [memory.slots, Math.floor(memory.slotKib / 1_024), Math.floor(memory.mostKib / 1_024)]
  }
  assert.deepEqual(shared(256, 1), [1, 64, 129])
  assert.deepEqual(shared(512, 4), [4, 77, 385])
  assert.deepEqual(shared(512, 8), [8, 42, 385])
  assert.deepEqual(shared(512, 4, { isShared: true }), [4, 51, 258])
  assert.deepEqual(shared(512, 8, { isShared: true, policyKib: 65_536 }), [3, 64, 258])
  assert.deepEqual(shared(256, 8), [5, 21, 129])
  assert.deepEqual(shared(256, 8, { policyKib: 0 }), [5, 21, 129])
  assert.deepEqual(shared(64 * 1_024, 2), [2, 1_024, 1_024])
  // OWASP's argon2id is always accepted, by one thread.
  assert.deepEqual(shared(128, 4), [1, 19, 19])
  assert.ok(hashingMemory({ slots: 1, policyKib: 0, isShared: false }).slotKib >= 19_456)
  assert.deepEqual([policyKib(tooMuch), policyKib({ algorithm: 'bcrypt' })], [2_049, 0])
})

test('packages hash no more at a time than there is memory for, in the order of their calls, and what takes none does not wait', async () => {
  const threads = new Threads(4, 100)
  const order: string[] = []
  let [inUseKib, mostKib] = [0, 0]
  const call = (name: string, kib: number) =>
    threads.run(async () => {
      order.push(name)
      inUseKib += kib
      mostKib = Math.max(mostKib, inUseKib)
      await new Promise((resolve) => setImmediate(resolve))
      inUseKib -= kib
    }, kib)
  await Promise.all([call('a', 60), call('b', 60), call('c', 30), call('d', 0), call('all', 100), call('e', 100)])
  assert.equal(mostKib, 100)
  assert.deepEqual(order, ['a', 'd', 'b', 'c', 'all', 'e'])
  await assert.rejects(call('more', 101), UnsupportedHashError)
})

test("a hash of the engine that takes more than a thread's share begins when no package has memory, and none gets any meanwhile", async () => {
  const threads = new Threads(4, 100)
  const begun: string[] = []
  const call = (name: string) => async () => void begun.push(name)
  const earlier = withResolvers<void>()
  const aTurn = () => new Promise((resolve) => setImmediate(resolve))
  const first = threads.run(() => earlier.promise, 60)
  await aTurn()
  const calls = [
    ...[first, threads.inEngine(call('large'), 101), threads.inEngine(call('small'), 100)],
    threads.run(call('next package'), 10),
  ]
  await aTurn()
  assert.deepEqual(begun, ['small'])
  earlier.resolve()
  await Promise.all(calls)
  assert.deepEqual(begun, ['small', 'large', 'next package'])
})

test('a call that fails gives its memory back', async () => {
  const threads = new Threads(1, 10)
  await assert.rejects(
    threads.run(() => Promise.reject(new Error('no')), 10),
    /no/,
  )
  assert.equal(await threads.run(async () => 'yes', 10), 'yes')
})

test('a stored hash that asks for more is unsupported, and one that asks for as much is verified', async () => {
  const stored = await hasher.hash('right')
  assert.equal(await hasher.verify('right', stored), true)
  const more = stored.replace('m=2048', 'm=2049')
  await assert.rejects(async () => hasher.verify('right', more), UnsupportedHashError)
})

test("a stored hash of more than a slot's share is verified with all memory, and no new hash takes so much", async () => {
  const larger = await Hasher.load(argon2idPolicy(tooMuch), {})
  const stored = await larger.hash('right')
  const roomy = await Hasher.load(argon2idPolicy(cost), { slotKib: 2_048, mostKib: 2_049 })
  assert.equal(await roomy.verify('right', stored), true)
  await assert.rejects(async () => roomy.verify('right', stored.replace('m=2049', 'm=2050')), UnsupportedHashError)
  await assert.rejects(roomy.hash('right', tooMuch), UnsupportedHashError)
})

test('scrypt of other systems is unsupported where they ask for more, and verified where they do not', async () => {
  const [salt, key] = ['c2FsdHNhbHRzYWx0c2FsdA', 'A'.repeat(43)]
  const askingFor: [kib: number, storedHash: string][] = [
    [1_025, `$scrypt$ln=10,r=8,p=1$${salt}$${key}`],
    [16_385, `$firebase-scrypt$ln=14,r=8$${salt}==$${'A'.repeat(86)}==`],
    [16_385, `${'0a'.repeat(16)}:${'0b'.repeat(64)}`],
  ]
  const firebase = firebaseProject(firebaseExample)
  for (const [kib, storedHash] of askingFor) {
    const fitting = await Hasher.load(argon2idPolicy(least), { mostKib: kib, firebase })
    assert.equal(await fitting.verify('wrong', storedHash), false, storedHash)
    const narrow = await Hasher.load(argon2idPolicy(least), { mostKib: kib - 1, firebase })
    await assert.rejects(async () => narrow.verify('wrong', storedHash), UnsupportedHashError, storedHash)
  }
})

test('a policy of a request that asks for more makes no hash', async () => {
  await assert.rejects(hasher.hash('right', tooMuch), UnsupportedHashError)
})

test('a verify with such a policy tells a known user from none by the password alone, and hashes nothing anew', async () => {
  const options = { hasher, refused: assert.fail }
  const storedHash = await hasher.hash('right')
  const resultOf = async (password: string, stored: string | null) =>
    (await performVerify({ password, storedHash: stored, policy: tooMuch }, options)).result
  assert.deepEqual(await resultOf('right', storedHash), { kind: 'match' })
  assert.deepEqual(await resultOf('wrong', storedHash), { kind: 'mismatch' })
  assert.deepEqual(await resultOf('wrong', null), { kind: 'mismatch' })
})

test('a worker whose own policy asks for more does not start', async () => {
  const starting = Hasher.load(argon2idPolicy(tooMuch), { slotKib: 2_048 })
  await assert.rejects(starting, /more memory than a slot has here: 2048 KiB/)
})
