// Stored hashes of argon2 as packages write them: one parser for worker, import and drop-ins.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { isBelow, isOf, parseArgon2 } from '../../src/wire/stored-hash.ts'

const salt = 'pyjCAFVnz8LtrvIlxaMwig'
const digest = 'TmqxfXMObdDUDPEfhFZ5C8IcUJiSPl5uuJyJUH2yVNY'
const stored = (parameters: string, version = 'v=19$') => `$argon2id$${version}${parameters}$${salt}$${digest}`
const policy = { algorithm: 'argon2id', memoryKib: 256, time: 2, parallelism: 1 } as const

test('parameters are read in any order, and say the same', () => {
  const specified = parseArgon2(stored('m=256,t=2,p=1'))
  assert.deepEqual(specified, {
    ...{ algorithm: 'argon2id', version: 19, memoryKib: 256, time: 2, parallelism: 1 },
    ...{ salt: Buffer.from(salt, 'base64'), digest: Buffer.from(digest, 'base64') },
  })
  for (const order of ['m=256,p=1,t=2', 'p=1,t=2,m=256', 't=2,m=256,p=1']) {
    assert.deepEqual(parseArgon2(stored(order)), specified, order)
    assert.equal(isOf(stored(order), policy), true)
    assert.equal(isBelow(stored(order), policy), false)
  }
})

test('without a version it is the first one; with data it is below any policy, and of no other', () => {
  assert.equal(parseArgon2(stored('m=256,t=2,p=1', ''))?.version, 16)
  const withData = stored('m=256,p=1,t=2,data=dGVuYW50IDc')
  for (const text of [withData, withData.replace('IDc', 'IDc='), stored('data=dGVuYW50IDc,m=256,p=1,t=2')])
    assert.deepEqual(parseArgon2(text)?.associatedData, Buffer.from('tenant 7'), text)
  assert.equal(isBelow(withData, policy), true)
  assert.equal(isOf(withData, policy), false)
})

test('padding is read, and nothing that no encoder writes', () => {
  const bare = stored('m=256,t=2,p=1')
  assert.deepEqual(parseArgon2(`$argon2id$v=19$m=256,t=2,p=1$${salt}==$${digest}=`), parseArgon2(bare))
  const wrong = [
    ...[`${bare}==`, `${bare}!`, `${bare}\n`, ` ${bare}`, `${bare}$`, bare.slice(0, -1), bare.replace(/Y$/, 'Z')],
    ...[bare.replace(salt, `${salt}=`), bare.replace('wig', 'wih')],
    ...[bare.replace(salt, 'c2FsdA'), bare.replace('19', '20')],
    ...[
      ...['m=256,t=2', 'm=256,t=2,p=1,p=1', 'm=256,t=2,p=1,x=1', 'm=256,t=2,p=1,'],
      ...['m=0256,t=2,p=1', 'm=+256,t=2,p=1', 'm=256x,t=2,p=1', 'm=256,t=0,p=1', 'm=256,t=2,p=1\nx', 'xm=256,t=2,p=1'],
      ...['m=256,t=2,p=1,data=dGVuYW50IDd', 'm=256,t=2,p=1,data='],
    ].map((parameters) => stored(parameters)),
  ]
  for (const text of wrong) assert.equal(parseArgon2(text), undefined, text)
})

test('a digest has four bytes or more', () => {
  const ofDigest = (text: string) => parseArgon2(`$argon2id$v=19$m=256,t=2,p=1$${salt}$${text}`)
  assert.deepEqual(ofDigest('AAAAAA')?.digest, Buffer.alloc(4))
  assert.equal(ofDigest('AAAA'), undefined)
})
