import assert from 'node:assert/strict'
import bcrypt from 'bcrypt'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { UnsupportedHashError } from '../../src/hashing/methods/recipe.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'

const hasher = await Hasher.load(argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 }), {})

/** 72 bytes, all that bcrypt reads, and their hash. */
const longest = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const hashOfLongest = '$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui'

// Openwall's crypt_blowfish, wrapper.c; the three names are one algorithm for passwords like these.
const vectors: [password: string, storedHash: string][] = [
  ['U*U', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
  ['U*U*', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK'],
  ['', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy'],
  [longest, hashOfLongest],
]

for (const [password, storedHash] of vectors) {
  for (const version of ['2a', '2b', '2y']) {
    test(`${version}: the published vector of "${password}" is verified, and nothing near it`, async () => {
      const hash = storedHash.replace('2a', version)
      assert.equal(await hasher.verify(password, hash), true)
      for (const wrong of [`x${password}`, `${password.slice(0, -1)}x`, password.toLowerCase().replace('u', 'v')]) {
        if (wrong !== password) assert.equal(await hasher.verify(wrong, hash), false, JSON.stringify(wrong))
      }
    })
  }
}

test('of a stored hash the first 72 bytes count, as its maker read them', async () => {
  for (const version of ['2a', '2b', '2y']) {
    const hash = hashOfLongest.replace('2a', version)
    for (const added of ['x', ' ', 'ä', 'chars after 72 are ignored'])
      assert.equal(await hasher.verify(longest + added, hash), true, added)
    assert.equal(await hasher.verify(`${longest.slice(0, -1)}xchars after`, hash), false)
  }
})

test('where the maker refused longer passwords they do not match', async () => {
  const strict = await Hasher.load(argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 }), {
    longPasswords: 'refuse',
  })
  assert.equal(await strict.verify(longest, hashOfLongest), true)
  for (const added of ['x', ' ', 'ä']) assert.equal(await strict.verify(longest + added, hashOfLongest), false, added)
})

test('the limit is counted in bytes, and cuts a character in two', async () => {
  const hash = '$2b$04$CCCCCCCCCCCCCCCCCCCCC.G0X0RUFKskzu9cVGSYSHT5So8taLd7.'
  assert.equal(await hasher.verify('ä'.repeat(36), hash), true)
  assert.equal(await hasher.verify('ä'.repeat(37), hash), true)
  assert.equal(await hasher.verify('ä'.repeat(35), hash), false)
  const ofHalf = await bcrypt.hash(Buffer.from(`x${'ä'.repeat(36)}`).subarray(0, 72), 4)
  assert.equal(await hasher.verify(`x${'ä'.repeat(36)}`, ofHalf), true)
})

test('`2`, the first version, ends no password with a NUL; bits of a salt that mean nothing are no other salt', async () => {
  const first = '$2$05$......................XuQjdH.wPVNUZ/bOfstdW/FqB8QSjte'
  assert.equal(await hasher.verify('abc', first), true)
  assert.equal(await hasher.verify('abcabc', first), true)
  for (const wrong of ['', 'ab', 'abca']) assert.equal(await hasher.verify(wrong, first), false)
  assert.equal(await hasher.verify('abc', first.replace('$2$', '$2b$')), false)
  assert.equal(await hasher.verify('test', '$2a$04$oaQbBqq8JnSM1NHRPQGXORY4Vw3bdHKLIXTecPDRAcJ98cz1ilveO'), true)
})

test('a password with a NUL is refused, though what stands before it matches', async () => {
  for (const version of ['2a', '2b', '2y']) {
    const hash = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'.replace('2a', version)
    for (const password of ['U*U\0', 'U*U\0x', '\0U*U']) {
      assert.equal(await hasher.verify(password, hash), false, JSON.stringify(password))
    }
  }
  const hashOfNothing = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy'
  assert.equal(await hasher.verify('\0', hashOfNothing), false)
})

test('a value that is no bcrypt hash, or costs too much, is refused as unsupported, without any work', async () => {
  const salted = 'CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
  const unsupported = [
    `$2$03$${salted}`,
    `$2c$05$${salted}`,
    `$2a$22$${salted}`,
    `$2a$5$${salted}`,
    `$2a$05$${salted}e`,
    `$2a$05$${salted.replace('.', '+')}`,
    `$2a$05$${salted}\n`,
    'password',
    '',
  ]
  for (const storedHash of unsupported) {
    await assert.rejects(hasher.verify('U*U', storedHash), UnsupportedHashError, storedHash)
    assert.throws(() => hasher.isDue(storedHash), UnsupportedHashError, storedHash)
  }
})
