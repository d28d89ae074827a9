// Stored hashes of other systems: verified, counted by algorithm, replaced at the next login.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { firebaseProject } from '../../src/hashing/formats/settings.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { UnsupportedHashError } from '../../src/hashing/methods/recipe.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { extendedBytes, firebaseExample, vectorPassword, vectors } from '../format-vectors.ts'

const policy = argon2idPolicy({ memoryKib: 64, time: 1, parallelism: 1 })
const firebase = firebaseProject(firebaseExample)
const hasher = await Hasher.load(policy, { slots: 2, firebase })

const wrongPasswords = ['', vectorPassword.slice(1), vectorPassword.replace('ä', 'a')]

/** Another character, one more or less, other cases, and bits of the last one that mean nothing. */
function damagedOf(text: string): string[] {
  const at = Math.max(text.lastIndexOf('$'), text.lastIndexOf(':'), text.lastIndexOf('}')) + 1
  const last = text.slice(at)
  const place = text.length - 6
  const swapped = text.slice(0, place) + (text[place] === '7' ? '5' : '7') + text.slice(place + 1)
  const damaged = [swapped, text.slice(0, -1), text.slice(0, -9), `${text}0`, `${text}===`, `${text}!`]
  damaged.push(` ${text}`, `${text}\n`, `${text}\0`, text.slice(1))
  const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+'
  const body = text.replace(/=+$/, '')
  const end = ALPHABET.indexOf(body.at(-1) ?? '')
  for (const bit of [1, 4, 32]) damaged.push(body.slice(0, -1) + (ALPHABET[end ^ bit] ?? '?') + text.slice(body.length))
  if (/^[0-9a-f]+$/.test(last))
    damaged.push(text.slice(0, at) + last.toUpperCase().replace(/.$/, (x) => x.toLowerCase()))
  return damaged.filter((other) => other !== text)
}

for (const [n, { origin, label, storedHash }] of vectors.entries()) {
  test(`${origin}: the right password matches, others do not`, async () => {
    assert.equal(await hasher.verify(vectorPassword, storedHash), true)
    // In turn, since hashing is most of the time of the unit tests.
    for (const wrong of [`${vectorPassword}.`, wrongPasswords[n % 3] ?? '']) {
      assert.equal(await hasher.verify(wrong, storedHash), false, wrong)
    }
    assert.equal(hasher.algorithmOf(storedHash), label)
  })

  test(`${origin}: a damaged hash matches nothing`, async () => {
    for (const text of damagedOf(storedHash)) {
      const matches = await hasher.verify(vectorPassword, text).catch((error: unknown) => {
        assert.ok(error instanceof UnsupportedHashError, String(error))
        return false
      })
      assert.equal(matches, false, text)
    }
  })
}

test('hashes of other systems are below the policy', () => {
  for (const { origin, storedHash } of vectors) {
    if (storedHash.startsWith('$argon2id$')) continue
    assert.equal(hasher.isDue(storedHash), true, origin)
  }
})

const key = 'A'.repeat(43)
for (const [what, storedHash] of [
  ['PBKDF2 of too many iterations', `$pbkdf2-sha256$999999999$c2FsdA$${key}`],
  ['PBKDF2 of too many blocks', `$pbkdf2-sha1$i=99999999$c2FsdHNhbHQ$${'A'.repeat(86)}`],
  ['PBKDF2 without an iteration', `pbkdf2_sha256$0$salt$${key}=`],
  ['PBKDF2 with a key that says nothing', '$pbkdf2-sha256$1000$c2FsdA$AAAA'],
  ['argon2 of too much work', `$argon2id$v=19$m=262144,t=100000,p=1$c2FsdHNhbHQ$${key}`],
  ['scrypt of too much memory', `$scrypt$ln=30,r=8,p=1$c2FsdA$${key}`],
  ['scrypt of too much work', `scrypt:65536:8:999$salt$${'0'.repeat(128)}`],
  ['scrypt of a cost that is no power of two', `scrypt$1000$salt$8$1$${'A'.repeat(86)}==`],
  ['scrypt without blocks', `$scrypt$ln=10,r=0,p=1$c2FsdA$${key}`],
  ['bcrypt_sha256 of too high a cost', `bcrypt_sha256$$2b$22$${'a'.repeat(52)}.`],
  ["Django's argon2 of too much memory", `argon2$argon2id$v=19$m=4194304,t=1,p=1$c2FsdHNhbHQ$${key}`],
  ['bcrypt 2x of too high a cost', `$2x$22$${'a'.repeat(52)}.`],
  ["Firebase's scrypt of too much memory", `$firebase-scrypt$ln=30,r=8$AAAA$${'A'.repeat(86)}==`],
  ["Firebase's scrypt of another length than the signer key", `$firebase-scrypt$ln=14,r=8$AAAA$${key}=`],
  ['sha-crypt of too many rounds', `$5$rounds=999999999$salt$${key}`],
  ['sha-crypt of too few rounds', `$6$rounds=0999$salt$${key}${key}`],
  ['sha-crypt of another length', `$6$salt$${key}`],
  ['phpass of too many rounds', `$P$Ssaltsalt${'A'.repeat(22)}`],
  ['phpass of too few rounds', `$S$4saltsalt${key}`],
  ['{SSHA} without a salt', `{SSHA}${'A'.repeat(27)}=`],
  ['ASP.NET Core Identity of an unknown function', `AQAAAAk${'A'.repeat(77)}`],
  ['ASP.NET Core Identity whose salt is longer than it', `AQAAAAEAAAPo/////w${'A'.repeat(66)}`],
] as const) {
  test(`${what} is unsupported, without any work`, async () => {
    const before = hasher.times()
    await assert.rejects(hasher.verify('password', storedHash), UnsupportedHashError)
    assert.deepEqual(hasher.times(), before)
    assert.equal(hasher.algorithmOf(storedHash), 'other')
  })
}

test('bcrypt 2x is of the bytes as they were extended: in ASCII as any', async () => {
  for (const [password, storedHash, matches] of extendedBytes)
    assert.equal(await hasher.verify(password, storedHash), matches, `${JSON.stringify(password)} ${storedHash}`)
})

test("Better Auth's passwords are those of NFKC, Node's are as they are", async () => {
  const stored =
    '43e39ba13244b50c34e6695262e568c2:52f26d15b1f010b538eebc5fe18a6e938707fad97c902bf914b15c4c30a006886a2d649d53dd3ad98aec6451ec5c87655be9e309c84a02a138fe7a40c2a7539e'
  assert.equal(await hasher.verify('\ufb01ne \u2116 1 pass', stored), true)
  assert.equal(await hasher.verify('fine No 1 pass', stored), true)
  assert.equal(await hasher.verify('fine no 1 pass', stored), false)
})

test("Firebase's own example matches, and is unsupported without the keys of its project or with others", async () => {
  const { password, storedHash } = firebaseExample
  assert.equal(await hasher.verify(password, storedHash), true)
  const without = await Hasher.load(policy, {})
  await assert.rejects(without.verify(password, storedHash), UnsupportedHashError)
  assert.equal(without.algorithmOf(storedHash), 'other')
  for (const other of [{ firebaseSaltSeparator: 'Bg==' }, { firebaseSignerKey: `${'A'.repeat(86)}==` }]) {
    const hasher = await Hasher.load(policy, { firebase: firebaseProject({ ...firebaseExample, ...other }) })
    assert.equal(await hasher.verify(password, storedHash), false)
  }
})

test('a text of no known format is counted as one, and makes up no name', () => {
  for (const stored of [
    '',
    '$',
    'argon2id',
    '$2$10$abc',
    '$2x$10$abc',
    '$12a$',
    '$made-up$',
    'x$constructor$',
    '{SSHA}',
    'AAAA',
  ]) {
    assert.equal(hasher.algorithmOf(stored), 'other')
  }
})

test('an algorithm is counted by the name that its hash begins with', () => {
  for (const variant of ['argon2id', 'argon2i', 'argon2d']) {
    assert.equal(hasher.algorithmOf(`$${variant}$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$${key}`), variant)
  }
  for (const version of ['2a', '2b', '2y'])
    assert.equal(hasher.algorithmOf(`$${version}$10$${'a'.repeat(53)}`), 'bcrypt')
})

test('digests that libuv has no thread for leave the event loop free, several at a time', async () => {
  const slow = [`$5$rounds=30000$salt$${key}`, `$6$rounds=30000$salt$${key}${key}`, `$P$Dsaltsalt${'A'.repeat(22)}`]
  let turns = 0
  let next: NodeJS.Immediate
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  next = setImmediate(turn)
  const matches = await Promise.all(slow.map((storedHash) => hasher.verify('x', storedHash)))
  clearImmediate(next)
  assert.deepEqual(matches, [false, false, false])
  assert.ok(turns > 100, `${turns} turns of the event loop meanwhile`)
})
