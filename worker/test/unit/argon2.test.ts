import assert from 'node:assert/strict'
import * as reference from 'argon2'
import { test } from 'vitest'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'

const policy = { memoryKib: 256, time: 2, parallelism: 1 }
const hasher = await Hasher.load(argon2idPolicy(policy), {})

/** An encoded hash of "somesalt", the salt of all the published vectors below. */
function encoded(variant: string, cost: string, digest: string): string {
  return `$${variant}$${cost}$c29tZXNhbHQ$${digest}`
}

function hex(digest: string): string {
  return Buffer.from(digest, 'hex').toString('base64').replace(/=+$/, '')
}

const vectors: [source: string, password: string, storedHash: string][] = [
  // The reference implementation's own tests (P-H-C/phc-winner-argon2, src/test.c).
  ['id', 'password', encoded('argon2id', 'v=19$m=256,t=2,p=1', 'nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4')],
  ['i, 2 lanes', 'password', encoded('argon2i', 'v=19$m=256,t=2,p=2', 'T/XOJ2mh1/TIpJHfCdQan76Q5esCFVoT5MAeIM1Oq2E')],
  [
    'i, version 16',
    'password',
    encoded('argon2i', 'v=16$m=256,t=2,p=1', '/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY'),
  ],
  // By the reference implementation's command line (golang.org/x/crypto/argon2); 24 bytes each.
  ['d', 'password', encoded('argon2d', 'v=19$m=64,t=1,p=1', hex('8727405fd07c32c78d64f547f24150d3f2e703a89f981a19'))],
  [
    'id, 3 passes',
    'password',
    encoded('argon2id', 'v=19$m=256,t=3,p=2', hex('4668d30ac4187e6878eedeacf0fd83c5a0a30db2cc16ef0b')),
  ],
]

for (const [name, password, storedHash] of vectors) {
  test(`argon2${name}: the published vector is verified, and nothing near it`, async () => {
    assert.equal(await hasher.verify(password, storedHash), true)
    for (const wrong of [`${password} `, `${password}\0`, password.slice(0, -1), password.toUpperCase(), '']) {
      assert.equal(await hasher.verify(wrong, storedHash), false, JSON.stringify(wrong))
    }
    assert.equal(await hasher.verify(password, storedHash.replace('c29tZXNhbHQ', 'c29tZXNhbHU')), false)
  })
}

test('a new hash is argon2id at the cost of the policy, salted, and verifies', async () => {
  const [one, other] = await Promise.all([hasher.hash('correct horse'), hasher.hash('correct horse')])
  assert.match(one, /^\$argon2id\$v=19\$m=256,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.notEqual(one, other)
  assert.equal(await hasher.verify('correct horse', one), true)
  assert.equal(await hasher.verify('correct horse', other), true)
  assert.equal(await hasher.verify('correct hors', one), false)
})

test("new hashes and the reference implementation's are understood both ways", async () => {
  assert.equal(await reference.verify(await hasher.hash('correct horse'), 'correct horse'), true)
  const theirs = await reference.hash('correct horse', { memoryCost: 512, timeCost: 3, parallelism: 2 })
  assert.equal(await hasher.verify('correct horse', theirs), true)
  assert.equal(await hasher.verify('correct hors', theirs), false)
})

test('passwords are read whole: long ones, NULs and any Unicode', async () => {
  const long = 'x'.repeat(1_024)
  const passwords = [`${long}a`, `${long}b`, 'a\0b', 'a\0c', 'a', 'ä', 'a\u0308', '🔑', '']
  for (const password of passwords) {
    const storedHash = await hasher.hash(password)
    const matching = await Promise.all(passwords.map((other) => hasher.verify(other, storedHash)))
    const same = passwords.map((other) => other === password)
    assert.deepEqual(matching, same, JSON.stringify(password.slice(-8)))
  }
})
