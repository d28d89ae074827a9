// Device tokens: their life, their keys, and what they must look like.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { parseKeyring } from '@spillway/queue/client'
import { test } from 'vitest'
import { DeviceTokens, deviceTokenOf, generationOf, isSigned } from '../../src/limits/guessing.ts'

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

const keyring = parseKeyring(`k1:${Buffer.alloc(32, 1).toString('base64')}`)
const devices = new DeviceTokens(keyring, { ttlS: 100, nowMs: () => 1_790_000_000_000 })

test('a token is read whole: with anything before or after it, it is none', () => {
  const token = devices.issue('ada', 'AAAAAAAA')
  assert.ok(devices.read('ada', token))
  for (const text of [`x${token}`, `${token}x`, `${token}\n`, token.slice(1), token.slice(0, -1), '', 'x']) {
    assert.equal(devices.read('ada', text), null, text)
  }
})

test('a signature is looked for among the codes of all keys; one of another length is of none', () => {
  const codes = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const of = (bytes: Buffer) => isSigned(codes, bytes.toString('base64url'))
  assert.deepEqual([of(Buffer.alloc(32, 1)), of(Buffer.alloc(32, 2)), of(Buffer.alloc(32, 3))], [true, true, false])
  assert.deepEqual([of(Buffer.alloc(31, 1)), of(Buffer.alloc(33, 1)), isSigned(codes, '')], [false, false, false])
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
