// What a stored hash says of its making, how it compares with a policy, and how a policy travels.
import assert from 'node:assert/strict'
import { isHashRequest, isVerifyRequest, padRequest } from '@spillway/queue/wire/job'
import { bcryptReadsWhole, completePolicy, type HashPolicy } from '@spillway/queue/wire/policy'
import { isBelow, isDue, isOf, parseArgon2, parseStoredHash, rehashModes } from '@spillway/queue/wire/stored-hash'
import { test } from 'vitest'
import { createPasswordsWith } from '../../src/application/create-passwords.ts'

const bcrypt = (cost: number): HashPolicy => ({ algorithm: 'bcrypt', cost })
const argon2id: HashPolicy = { algorithm: 'argon2id', memoryKib: 256, time: 2, parallelism: 1 }
const bcryptHash = '$2b$10$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
const argon2Hash = (variant: string, version: number, cost: string) =>
  `$${variant}$v=${version}$${cost}$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4`
const cheap = 'm=256,t=2,p=1'

test('algorithm and cost are read from both formats, and from nothing else', () => {
  assert.deepEqual(parseStoredHash(bcryptHash), { algorithm: 'bcrypt', cost: 10 })
  const costOf = (text: string) => {
    const { salt: _, digest: __, ...cost } = parseArgon2(text) ?? assert.fail(text)
    return cost
  }
  assert.deepEqual(costOf(argon2Hash('argon2d', 16, 'm=8,t=3,p=4')), {
    ...{ algorithm: 'argon2d', version: 16, memoryKib: 8, time: 3, parallelism: 4 },
  })
  assert.deepEqual(costOf(argon2Hash('argon2id', 19, 'm=65536,t=10,p=16')), {
    ...{ algorithm: 'argon2id', version: 19, memoryKib: 65_536, time: 10, parallelism: 16 },
  })
  for (const hash of [bcryptHash, argon2Hash('argon2id', 19, cheap)])
    for (const other of [`x${hash}`, `${hash}\n`]) assert.equal(parseStoredHash(other), undefined)
  for (const other of ['', 'x', bcryptHash.slice(0, -1), argon2Hash('argon2', 19, cheap)])
    assert.equal(parseStoredHash(other), undefined, other)
})

test('under bcrypt a lower cost of bcrypt is below, and argon2 never is', () => {
  const below = (storedHash: string, cost: number) => isBelow(storedHash, bcrypt(cost))
  assert.deepEqual([below(bcryptHash, 9), below(bcryptHash, 10), below(bcryptHash, 11)], [false, false, true])
  for (const variant of ['2a', '2y']) assert.equal(below(bcryptHash.replace('2b', variant), 10), false)
  assert.equal(below(argon2Hash('argon2i', 16, 'm=8,t=1,p=1'), 17), false)
  assert.equal(below('no hash', 4), true)
})

test('under argon2id all of bcrypt is below, and so are other variants, versions and lower costs', () => {
  assert.equal(isBelow(argon2Hash('argon2id', 19, cheap), argon2id), false)
  for (const below of [
    ...[bcryptHash.replace('$10$', '$17$'), argon2Hash('argon2id', 16, cheap), argon2Hash('argon2i', 19, cheap)],
    ...['m=255,t=9,p=1', 'm=512,t=1,p=1'].map((cost) => argon2Hash('argon2id', 19, cost)),
  ])
    assert.equal(isBelow(below, argon2id), true, below)
})

test('a hash is of a policy when algorithm and cost are the same', () => {
  assert.equal(isOf(bcryptHash, bcrypt(10)), true)
  assert.equal(isOf(argon2Hash('argon2id', 19, cheap), argon2id), true)
  for (const other of ['m=257,t=2,p=1', 'm=256,t=3,p=1', 'm=256,t=2,p=2'])
    assert.equal(isOf(argon2Hash('argon2id', 19, other), argon2id), false, other)
  for (const other of [argon2Hash('argon2id', 16, cheap), argon2Hash('argon2i', 19, cheap), bcryptHash, ''])
    assert.equal(isOf(other, argon2id), false, other)
  for (const other of [bcryptHash.replace('$10$', '$11$'), argon2Hash('argon2id', 19, cheap), ''])
    assert.equal(isOf(other, bcrypt(10)), false, other)
})

test('bcrypt reads 72 bytes, up to a NUL', () => {
  for (const whole of ['', 'x'.repeat(72), 'ä'.repeat(36)]) assert.equal(bcryptReadsWhole(whole), true)
  for (const not of ['x'.repeat(73), 'ä'.repeat(37), '\0', 'x\0']) assert.equal(bcryptReadsWhole(not), false)
})

test('what a policy leaves out is as OWASP has it, and a cost that no worker accepts is refused', () => {
  assert.deepEqual(completePolicy(), { algorithm: 'argon2id', memoryKib: 19_456, time: 2, parallelism: 1 })
  assert.deepEqual(completePolicy({ algorithm: 'bcrypt' }), { algorithm: 'bcrypt', cost: 12 })
  assert.deepEqual(completePolicy({ algorithm: 'argon2id', time: 3 }), {
    ...{ algorithm: 'argon2id', memoryKib: 19_456, time: 3, parallelism: 1 },
  })
  for (const cost of [3, 18, 10.5, Number.NaN])
    assert.throws(() => completePolicy({ algorithm: 'bcrypt', cost }), RangeError, String(cost))
  for (const wrong of [{ memoryKib: 7 }, { time: 0 }, { parallelism: 17 }, { parallelism: 4, memoryKib: 31 }])
    assert.throws(() => completePolicy({ algorithm: 'argon2id', ...wrong }), RangeError, JSON.stringify(wrong))
})

test('requests carry a policy or none; one that no worker accepts makes them malformed', () => {
  for (const policy of [argon2id, bcrypt(12)]) {
    assert.equal(isHashRequest({ password: 'x', policy }), true)
    assert.equal(isVerifyRequest({ password: 'x', storedHash: null, policy, rehash: false }), true)
  }
  assert.equal(isHashRequest({ password: 'x' }), true)
  for (const policy of [{ algorithm: 'md5' }, { algorithm: 'bcrypt' }, { algorithm: 'bcrypt', cost: 18 }, {}, null])
    assert.equal(isHashRequest({ password: 'x', policy }), false, JSON.stringify(policy))
})

test('a verify with a policy is as long with a stored hash as without, up to its block', () => {
  const lengthOf = (storedHash: string | null) =>
    JSON.stringify(padRequest({ password: 'x', storedHash, policy: argon2id, rehash: true })).length
  assert.equal(lengthOf(bcryptHash), lengthOf(null))
  assert.equal(lengthOf(argon2Hash('argon2id', 19, cheap)), lengthOf(null))
})

test('a match is hashed anew always where it is not of the policy, else where it is weaker, or never', () => {
  const due = (storedHash: string) => rehashModes.map((mode) => isDue(storedHash, argon2id, mode))
  assert.deepEqual(rehashModes, ['always', 'weaker', 'never'])
  assert.deepEqual(due(argon2Hash('argon2id', 19, cheap)), [false, false, false])
  assert.deepEqual(due(argon2Hash('argon2id', 19, 'm=512,t=3,p=1')), [true, false, false])
  assert.deepEqual(due(bcryptHash), [true, true, false])
  assert.equal(isDue(argon2Hash('argon2id', 19, cheap), bcrypt(10), 'always'), true)
})

// Names that options do not have are told, instead of taken for not given.

const nowhere = new URL('file:///nowhere/beside.cjs')
/** As programs without types give them. */
const given = (options: object): object => options

test('an option that is misspelt is an error that names it, and what there is', () => {
  assert.throws(() => createPasswordsWith(nowhere, given({ polciy: {} })), {
    name: 'TypeError',
    message: /^options have no polciy: they have redis, .*policy/,
  })
  assert.throws(() => createPasswordsWith(nowhere, given({ waitMS: 1, Redis: '' })), /no waitMS, Redis:/)
})

test('so is a name of a policy', () => {
  assert.throws(
    () => completePolicy(Object.assign({ algorithm: 'bcrypt' } as const, { rounds: 12 })),
    /bcrypt have no rounds/,
  )
  const memoryCost = Object.assign({ algorithm: 'argon2id' } as const, { memoryCost: 65_536 })
  assert.throws(
    () => completePolicy(memoryCost),
    /argon2id have no memoryCost: they have algorithm, memoryKib, time, parallelism/,
  )
  assert.deepEqual(completePolicy({ algorithm: 'bcrypt', cost: 10 }), { algorithm: 'bcrypt', cost: 10 })
})
