// What asks for more memory than a worker has: it is refused before it is begun, whoever asks.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { firebaseProject } from '../../src/hashing/formats/firebase-project.ts'
import { createHasher, UnsupportedHashError } from '../../src/hashing/index.ts'
import { memoryLimitKib } from '../../src/hashing/memory-limit.ts'
import { performVerify } from '../../src/hashing/perform.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { firebaseExample } from '../format-vectors.ts'

const MIB = 1_024 * 1_024
const cost = { memoryKib: 2_048, time: 1, parallelism: 1 }
const least = { memoryKib: 8, time: 1, parallelism: 1 }
const tooMuch = { ...cost, algorithm: 'argon2id', memoryKib: 2_049 } as const
const hasher = await createHasher(argon2idPolicy(cost), { memoryLimitKib: 2_048 })

test('each slot has its share of what the limit leaves beside the program, and can always do the cost that OWASP asks for', () => {
  const limit = (mib: number, slots: number, isShared = false) =>
    memoryLimitKib({ slots, isShared, limitBytes: mib * MIB }) / 1_024
  assert.equal(limit(256, 1), 128)
  assert.equal(limit(512, 4), 96)
  assert.equal(limit(512, 4, true), 64)
  assert.equal(limit(128, 1), 19)
  assert.equal(limit(64 * 1_024, 2), 1_024)
  assert.ok(memoryLimitKib({ slots: 1, isShared: false }) >= 19_456)
})

test('a stored hash that asks for more is unsupported, and one that asks for as much is verified', async () => {
  const stored = await hasher.hash('right')
  assert.equal(await hasher.verify('right', stored), true)
  const more = stored.replace('m=2048', 'm=2049')
  await assert.rejects(async () => hasher.verify('right', more), UnsupportedHashError)
})

test('scrypt and yescrypt of other systems are unsupported where they ask for more, and verified where they do not', async () => {
  const [salt, key] = ['c2FsdHNhbHRzYWx0c2FsdA', 'A'.repeat(43)]
  const askingFor: [kib: number, storedHash: string][] = [
    [1_025, `$scrypt$ln=10,r=8,p=1$${salt}$${key}`],
    [16_385, `$firebase-scrypt$ln=14,r=8$${salt}==$${'A'.repeat(86)}==`],
    [16_385, `${'0a'.repeat(16)}:${'0b'.repeat(64)}`],
    [1_024, `$y$j75$saltsaltsaltsaltsalt..$${'.'.repeat(43)}`],
  ]
  const firebase = firebaseProject(firebaseExample)
  for (const [kib, storedHash] of askingFor) {
    const fitting = await createHasher(argon2idPolicy(least), { memoryLimitKib: kib, firebase })
    assert.equal(await fitting.verify('wrong', storedHash), false, storedHash)
    const narrow = await createHasher(argon2idPolicy(least), { memoryLimitKib: kib - 1, firebase })
    await assert.rejects(async () => narrow.verify('wrong', storedHash), UnsupportedHashError, storedHash)
  }
})

test('a policy of a request that asks for more makes no hash', async () => {
  await assert.rejects(hasher.hash('right', tooMuch), UnsupportedHashError)
})

test('a verify with such a policy tells a known user from none by the password alone, and hashes nothing anew', async () => {
  const options = { hasher, refused: assert.fail }
  const storedHash = await hasher.hash('right')
  const verdictOf = async (password: string, stored: string | null) =>
    (await performVerify({ password, storedHash: stored, policy: tooMuch }, options)).verdict
  assert.deepEqual(await verdictOf('right', storedHash), { kind: 'match' })
  assert.deepEqual(await verdictOf('wrong', storedHash), { kind: 'mismatch' })
  assert.deepEqual(await verdictOf('wrong', null), { kind: 'mismatch' })
})

test('a worker whose own policy asks for more does not start', async () => {
  const starting = createHasher(argon2idPolicy(tooMuch), { memoryLimitKib: 2_048 })
  await assert.rejects(starting, /more memory than a slot has here: 2048 KiB/)
})
