// Every case is run through two versions of `argon2` and through @spillway/client/argon2.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import * as argon2 from '@spillway/client/argon2'
import { sharePasswords } from '@spillway/client/shared-passwords'
import previous from 'argon2'
import { afterAll, test } from 'vitest'
import { compareAll, passwordsBeside, signatures, type Untyped } from '../drop-in.ts'
import { argon2Cases, given } from '../drop-in-argon2.cases.ts'
import { rejectsWith } from '../passwords.ts'

// The prebuilt code of 0.45 crashes Node 20. Both versions compile the same sources.
process.env.ARGON2_PREBUILD = dirname(createRequire(import.meta.url).resolve('argon2'))
const { default: original } = await import('argon2-newest')

const passwords = passwordsBeside()
afterAll(() => passwords.close())
sharePasswords(passwords)
const { close: _, ...ours } = argon2

const stored = await original.hash('correct horse', given)
const cases = argon2Cases(original, stored)
compareAll(cases, original, ours)

/** The version before writes `m,t,p` instead of `m,p,t`. */
const inOneOrder = (outcome: unknown): unknown =>
  typeof outcome === 'string'
    ? outcome.replace(/(m=[^,$]+),(p=[^,$]+),(t=[^,$]+)/, '$1,$3,$2')
    : Array.isArray(outcome)
      ? outcome.map(inOneOrder)
      : outcome
compareAll(cases, previous, ours, { version: '0.44', normal: inOneOrder })

test('the names and the lengths of the functions are those of the package', () => {
  assert.deepEqual(signatures(ours), signatures(original))
  for (const name of ['argon2d', 'argon2i', 'argon2id'] as const) assert.equal(ours[name], original[name])
})

test('a new hash has the costs of the package, another salt each time, and is the original’s', async () => {
  const [one, other] = await Promise.all([ours.hash('correct horse'), ours.hash('correct horse', {})])
  assert.notEqual(one, other)
  assert.match(one, /^\$argon2id\$v=19\$m=65536,p=4,t=3\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.equal(await original.verify(one, 'correct horse'), true)
  assert.equal(ours.needsRehash(one), false)
})

test('what no worker takes is refused by its code', async () => {
  const beyond = [{ memoryCost: 2 ** 20 + 1 }, { timeCost: 65 }, { parallelism: 17, memoryCost: 512 }]
  for (const each of [...beyond, { hashLength: 1_025 }, { version: 18 }])
    await rejectsWith('unsupported_hash', ours.hash('x', { ...given, ...each }))
  await rejectsWith('unsupported_hash', ours.verify(stored.replace('t=2', 't=1000000'), 'correct horse'))
  await rejectsWith('unsupported_hash', ours.verify(stored.replace('v=19', 'v=18'), 'correct horse'))
})

test('a hash that no password would match is refused instead of made', async () => {
  for (const version of [undefined, 0, 18, 2 ** 31]) {
    const options: Untyped = { ...given, version }
    await rejectsWith('unsupported_hash', ours.hash('x', options))
    await rejectsWith('unsupported_hash', ours.hash('x', { ...options, raw: true }))
  }
  for (const name of ['hashLength', 'timeCost', 'memoryCost'])
    for (const value of [-1, 2 ** 31])
      await rejectsWith('unsupported_hash', ours.hash('x', { ...given, [name]: value }))
})

test('costs with a fraction are written as they were taken, so that all parsers read them', async () => {
  for (const name of ['memoryCost', 'timeCost', 'parallelism'] as const) {
    const options = { ...given, [name]: given[name] + 0.5 }
    const hash = await ours.hash('correct horse', options)
    assert.match(hash, /^\$argon2id\$v=19\$m=64,p=1,t=2\$/)
    assert.equal(hash.replace(/.*\$/, ''), (await original.hash('correct horse', options)).replace(/.*\$/, ''))
    assert.equal(await passwords.verify('correct horse', hash), true)
  }
})

test('associated data whose base64 is digits alone is read as it was given', async () => {
  const associatedData = Buffer.from('123456789012345678901234', 'base64')
  const hash = await ours.hash('correct horse', { ...given, associatedData })
  assert.equal(await ours.verify(hash, 'correct horse'), true)
  assert.equal(await passwords.verify('correct horse', hash), true)
})
