// Device tokens and proofs of work: life and keys; sprayed passwords.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { parseKeyring } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { SprayedPasswords } from '../../src/plugins/guessing/attacks.ts'
import { ProofOfWork } from '../../src/plugins/guessing/challenges.ts'
import { DeviceTokens, deviceTokenOf, generationOf, isSigned } from '../../src/plugins/guessing/device-token.ts'
import { solve, solveNot } from '../solve.ts'

const [older, newer, strange] = ['a', 'b', 'a'].map((kid) => `${kid}:${randomBytes(32).toString('base64')}`)
const [before, during, rotated, stranger] = [`${older}`, `${older},${newer}`, `${newer},${older}`, `${strange}`].map(
  parseKeyring,
)
if (!before || !during || !rotated || !stranger) throw new Error('four keyrings')
const GENERATION = 'AAAAAAAA'
let nowMs = 1_790_000_000_000
const clock = { nowMs: () => nowMs }
const later = (s: number, body: () => void) => {
  nowMs += s * 1_000
  body()
  nowMs -= s * 1_000
}

test('a device is known for so long and no longer', () => {
  const devices = new DeviceTokens(before, { ttlS: 100, ...clock })
  const token = devices.issue('ada', GENERATION)
  assert.equal(devices.read('ada', token)?.generation, GENERATION)
  later(100, () => assert.ok(devices.read('ada', token)))
  later(101, () => assert.equal(devices.read('ada', token), null))
  later(-90, () => assert.ok(devices.read('ada', token)))
  later(-91, () => assert.equal(devices.read('ada', token), null))
  assert.equal(devices.read('bob', token), null)
})

test('a generation is of one user and one password, and is bound by the signature', () => {
  const devices = new DeviceTokens(before, { ttlS: 100, ...clock })
  const generations = [
    { userId: 'a', credentialVersion: 1 },
    { userId: 'a', credentialVersion: 2 },
    { userId: 'b', credentialVersion: 1 },
  ].map(generationOf)
  assert.equal(new Set(generations).size, 3)
  const [one = '', other = ''] = generations
  const token = devices.issue('ada', one)
  assert.equal(devices.read('ada', token.replace(`.${one}.`, `.${other}.`)), null)
})

test('device tokens outlast a rotation of keys while the old key is on the list', () => {
  const [old, mid, now, others] = [before, during, rotated, stranger].map(
    (keyring) => new DeviceTokens(keyring, { ttlS: 100, ...clock }),
  )
  const token = old?.issue('ada', GENERATION) ?? ''
  for (const each of [old, mid, now]) assert.equal(each?.read('ada', token)?.generation, GENERATION)
  assert.equal(others?.read('ada', token), null)
  assert.ok(mid?.read('ada', now?.issue('ada', GENERATION) ?? ''))
  assert.equal(old?.read('ada', now?.issue('ada', GENERATION) ?? ''), null)
})

test('a device is recognized before its account is known, for as long, by any of the keys', () => {
  const [old, now, others] = [before, rotated, stranger].map(
    (keyring) => new DeviceTokens(keyring, { ttlS: 100, ...clock }),
  )
  const [token = '', next] = [old?.issue('ada', GENERATION), old?.issue('ada', GENERATION)]
  const [device = '', issuedAt, ...signature] = token.split('.')
  assert.equal(old?.recognize(token), device)
  assert.equal(now?.recognize(token), device)
  assert.notEqual(old?.recognize(next ?? ''), device)
  assert.equal(others?.recognize(token), undefined)
  later(101, () => assert.equal(old?.recognize(token), undefined))
  const useless = [
    [device, Number(issuedAt) + 1, ...signature],
    [`A${device.slice(1)}` === device ? `B${device.slice(1)}` : `A${device.slice(1)}`, issuedAt, ...signature],
    [randomBytes(16).toString('base64url'), issuedAt, ...signature],
    ['x'],
  ]
  for (const parts of useless) assert.equal(old?.recognize(parts.join('.')), undefined)
  // The last character has bits to spare: another text, and the same device.
  const last = device.at(-1) === 'A' ? 'B' : 'A'
  const respelt = [...'AQgw'].includes(device.at(-1) ?? '') ? `${device.slice(0, -1)}${last}` : device
  assert.ok([device, undefined].includes(old?.recognize([respelt, issuedAt, ...signature].join('.'))))
})

test('a challenge is good until it expires, at every gateway with the key', () => {
  const [here, there] = [before, rotated].map((keyring) => new ProofOfWork(keyring, { bits: 3, ...clock }))
  const answer = solve(here?.issue('ada', 0) ?? { token: '', bits: 0 })
  assert.equal(there?.check('ada', answer)?.leftMs, 300_000)
  assert.equal(there?.check('bob', answer), undefined)
  later(299, () => assert.ok(there?.check('ada', answer)))
  later(300, () => assert.equal(there?.check('ada', answer), undefined))
  assert.equal(new ProofOfWork(stranger, { bits: 3, ...clock }).check('ada', answer), undefined)
})

test('the work grows with the failures of the account, and has an end', () => {
  const work = new ProofOfWork(before, { bits: 18, ...clock })
  const bits = [-90, 0, 99, 100, 300, 700, 6_300, 1_000_000].map((excess) => work.issue('ada', excess).bits)
  assert.deepEqual(bits, [18, 18, 18, 19, 20, 21, 24, 24])
})

test('a password that fails on fifty accounts within ten minutes is noticed once', () => {
  const sprayed = new SprayedPasswords(clock.nowMs)
  const tries = (password: string, accounts: number) =>
    Array.from({ length: accounts }, (_, n) => sprayed.failed(password, `account ${n}`)).filter(Boolean).length
  assert.equal(tries('a', 49), 0)
  assert.equal(tries('a', 49), 0, 'the same accounts again')
  assert.equal(tries('b', 120), 1)
  assert.equal(tries('a', 50), 1)
  assert.equal(tries('a', 500), 0)
  later(600, () => assert.equal(tries('a', 60), 1))
})

test('an attack with many passwords takes no more memory, and is looked at again in the next window', () => {
  const sprayed = new SprayedPasswords(clock.nowMs)
  for (let n = 0; n < 60_000; n += 1) sprayed.failed(`password ${n}`, 'account')
  const tries = () => Array.from({ length: 60 }, (_, n) => sprayed.failed('a', `account ${n}`)).filter(Boolean).length
  assert.equal(tries(), 0)
  later(600, () => assert.equal(tries(), 1))
})

// What a device token must look like, and which key signed it.

const keyring = parseKeyring(`k1:${Buffer.alloc(32, 1).toString('base64')}`)
const devices = new DeviceTokens(keyring, { ttlS: 100, nowMs: () => 1_790_000_000_000 })

test('a token is read whole: with anything before or after it, it is none', () => {
  const token = devices.issue('ada', 'AAAAAAAA')
  assert.ok(devices.read('ada', token))
  for (const text of [`x${token}`, `${token}x`, `${token}\n`, token.slice(1), token.slice(0, -1), '', 'x']) {
    assert.equal(devices.read('ada', text), null, text)
    assert.equal(devices.recognize(text), undefined, text)
  }
})

test('no two devices are the same, and the id of a device is the id in its token', () => {
  const tokens = Array.from({ length: 100 }, () => devices.issue('ada', 'AAAAAAAA'))
  const ids = tokens.map((token) => devices.read('ada', token)?.id)
  const shown = tokens.map((token) => token.split('.')[0])
  assert.deepEqual(ids, shown)
  assert.equal(new Set(ids).size, 100)
})

test('a signature is looked for among the codes of all keys; one of another length is of none', () => {
  const codes = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const of = (bytes: Buffer) => isSigned(codes, bytes.toString('base64url'))
  assert.deepEqual([of(Buffer.alloc(32, 1)), of(Buffer.alloc(32, 2)), of(Buffer.alloc(32, 3))], [true, true, false])
  assert.deepEqual([of(Buffer.alloc(31, 1)), of(Buffer.alloc(33, 1)), isSigned(codes, '')], [false, false, false])
})

test('the id of a device ends with a code of its own, by which gateways of any version know it', () => {
  const [id = '', issuedAt] = devices.issue('ada', 'AAAAAAAA').split('.')
  const bytes = Buffer.from(id, 'base64url')
  const random = bytes.subarray(0, 10).toString('base64url')
  const [code] = keyring.macs({ purpose: 'device-id', id: `${random}.${issuedAt}` })
  assert.deepEqual(bytes.subarray(10), code.subarray(0, 6))
})

test('the signature of a token covers its account, device, time and generation', () => {
  const [device, issuedAt, generation, signature] = devices.issue('ada', 'AAAAAAAA').split('.')
  const [code] = keyring.macs({ purpose: 'device', id: JSON.stringify(['ada', device, issuedAt, generation]) })
  assert.equal(signature, code.toString('base64url'))
})

test('a request shows its token in a header, or else in its cookie', () => {
  const cookie = '__Host-spillway-device=a.B-_9'
  const shown = [
    [{}, ''],
    [{ 'spillway-device': 'x' }, 'x'],
    [{ 'spillway-device': 'x', cookie }, 'x'],
    [{ 'spillway-device': '', cookie }, ''],
    [{ cookie }, 'a.B-_9'],
    [{ cookie: `first=1; ${cookie}; last=2` }, 'a.B-_9'],
    [{ cookie: `x${cookie}` }, ''],
    [{ cookie: 'a.B-_9' }, ''],
  ] as const
  for (const [headers, token] of shown) assert.equal(deviceTokenOf(headers), token, JSON.stringify(headers))
})

// A changed challenge is refused, and no challenge is solved by less than its work.

const issuedAtMs = 1_790_000_000_000
const workOf = (bits: number) => new ProofOfWork(keyring, { bits, nowMs: () => issuedAtMs })
/** Of no work: any text solves it. */
const free = workOf(0)
const { token } = free.issue('ada', 0)

test('a challenge tells its work and its life, and a solved one its id and what is left of that', () => {
  const issued = workOf(3).issue('ada', 0)
  assert.deepEqual([issued.bits, issued.expiresIn], [3, 300])
  const [id, expiresAtS, bits, signature] = issued.token.split('.')
  assert.deepEqual([expiresAtS, bits], [String(issuedAtMs / 1_000 + 300), '3'])
  // Gateways of two versions read each other's.
  const [code] = keyring.macs({ purpose: 'challenge', id: JSON.stringify(['ada', id, expiresAtS, '3']) })
  assert.equal(signature, code.toString('base64url'))
  assert.deepEqual(workOf(3).check('ada', solve(issued)), { id, leftMs: 300_000 })
})

test('less than its work solves no challenge, also where that has two digits', () => {
  for (const bits of [3, 10]) {
    const issued = workOf(bits).issue('ada', 0)
    assert.ok(workOf(bits).check('ada', solve(issued)))
    assert.equal(workOf(bits).check('ada', solveNot(issued)), undefined)
  }
})

test('an answer is a challenge and up to 64 characters, and nothing before, after or between', () => {
  for (const text of ['0', 'a-_Z', 'x'.repeat(64)]) assert.ok(free.check('ada', `${token}.${text}`), text)
  for (const answer of [
    '',
    token,
    `${token}.`,
    `${token}.${'x'.repeat(65)}`,
    `x${token}.0`,
    `${token}.0!`,
    `${token}.0\n`,
  ])
    assert.equal(free.check('ada', answer), undefined, answer)
})

test('a challenge with less work, a longer life or another id than was signed is none', () => {
  const [id = '', expiresAtS = '', bits = '', signature = ''] = workOf(10).issue('ada', 0).token.split('.')
  const forged = [
    [id, expiresAtS, '0', signature],
    [id, String(Number(expiresAtS) + 1), '0', signature],
    [`A${id.slice(1)}` === id ? `B${id.slice(1)}` : `A${id.slice(1)}`, expiresAtS, bits, signature],
    [id, expiresAtS, bits, 'A'.repeat(43)],
  ]
  for (const parts of forged) {
    const [, , claimed = ''] = parts
    assert.equal(workOf(10).check('ada', solve({ token: parts.join('.'), bits: Number(claimed) })), undefined)
  }
})
