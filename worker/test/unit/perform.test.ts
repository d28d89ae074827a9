// What a verify finds out, what it costs, and which new hash it brings.
import assert from 'node:assert/strict'
import type { Result, VerifyRequest } from '@spillway/queue/wire/job'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { performVerify } from '../../src/hashing/perform.ts'
import { argon2idPolicy, asPolicy, type Policy } from '../../src/hashing/policy.ts'

const cost = { memoryKib: 64, parallelism: 1 }
const bcryptHash = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
const match = { kind: 'match' }
const mismatch = { kind: 'mismatch' }
const weaker = await Hasher.load(argon2idPolicy({ ...cost, time: 1 }), {})
const hasher = await Hasher.load(argon2idPolicy({ ...cost, time: 2 }), {})
const old = [bcryptHash, await weaker.hash('U*U')]

async function verified(request: VerifyRequest, by = hasher) {
  const { result, upgrade } = await performVerify(request, { hasher: by, refused: () => undefined })
  return { result, following: await upgrade?.() }
}

async function resultOf(request: VerifyRequest, by?: Hasher): Promise<Result> {
  return (await verified(request, by)).result
}

/** The hash of a result is of this password, and of the policy of 2 passes. */
async function assertFresh(result: Result | undefined, password: string): Promise<void> {
  assert.ok(result !== undefined && 'hash' in result && result.hash !== undefined)
  assert.match(result.hash, /^\$argon2id\$v=19\$m=64,t=2,p=1\$/)
  assert.equal(await hasher.verify(password, result.hash), true)
}

test('the right password matches, a wrong one does not, and neither brings a hash', async () => {
  const storedHash = await hasher.hash('correct horse')
  assert.deepEqual(await resultOf({ password: 'correct horse', storedHash }), match)
  assert.deepEqual(await resultOf({ password: 'correct hors', storedHash }), mismatch)
})

test('the match of an old hash brings a new one of the same password, a mismatch does not', async () => {
  for (const storedHash of old) {
    await assertFresh(await resultOf({ password: 'U*U', storedHash }), 'U*U')
    assert.deepEqual(await resultOf({ password: 'u*u', storedHash }), mismatch)
  }
})

test('with a next password a match brings its hash, a mismatch and an unknown account bring nothing', async () => {
  const nextPassword = 'next one'
  for (const storedHash of [...old, await hasher.hash('U*U')]) {
    await assertFresh(await resultOf({ password: 'U*U', storedHash, nextPassword }), nextPassword)
    assert.deepEqual(await resultOf({ password: 'wrong', storedHash, nextPassword }), mismatch)
  }
  assert.deepEqual(await resultOf({ password: 'U*U', storedHash: null, nextPassword }), mismatch)
})

test('an unknown account and a stored hash that nothing here understands cost the work of one dummy', async () => {
  let dummies = 0
  const counting = Object.assign(await Hasher.load(argon2idPolicy({ ...cost, time: 2 }), {}), {
    dummy: async () => void (await Promise.resolve(dummies++)),
  })
  assert.deepEqual(await resultOf({ password: 'x', storedHash: null }, counting), mismatch)
  const refused = { kind: 'refused', code: 'unsupported_hash' }
  for (const storedHash of ['', 'plain text', bcryptHash.replace('$05$', '$31$')])
    assert.deepEqual(await resultOf({ password: 'x', storedHash, nextPassword: 'y' }, counting), refused)
  assert.equal(dummies, 4)
})

test('with an upgrade the result says that a new hash follows, of what is due by its mode', async () => {
  const stronger = await (await Hasher.load(argon2idPolicy({ ...cost, time: 3 }), {})).hash('U*U')
  for (const [upgrade, storedHash, follows] of [
    ['weaker', bcryptHash, true],
    ['weaker', stronger, false],
    ['always', stronger, true],
    ['never', bcryptHash, false],
  ] as const) {
    const { result, following } = await verified({ password: 'U*U', storedHash, upgrade })
    assert.deepEqual(result, follows ? { ...match, hashFollows: true } : match)
    if (follows) await assertFresh(following, 'U*U')
    else assert.equal(following, undefined)
  }
  const wrong = await verified({ password: 'x', storedHash: bcryptHash, upgrade: 'weaker' })
  assert.deepEqual(wrong, { result: mismatch, following: undefined })
})

test("the policy's own rehash is for requests that bring no policy", async () => {
  const policy: Policy['hashes'] = { algorithm: 'argon2id', ...cost, time: 2 }
  const never = await Hasher.load(asPolicy(policy, 'never'), {})
  const request = { password: 'U*U', storedHash: bcryptHash }
  assert.deepEqual(await resultOf(request, never), match)
  await assertFresh(await resultOf({ ...request, policy, rehash: true }, never), 'U*U')
})
