// Device tokens and proofs of work: their life, their keys; passwords that are sprayed; networks around networks.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { parseKeyring } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { wideNetworkOf } from '../../src/plugins/client-network.ts'
import { SprayedPasswords } from '../../src/plugins/guessing/attacks.ts'
import { ProofOfWork } from '../../src/plugins/guessing/challenges.ts'
import { DeviceTokens, generationOf } from '../../src/plugins/guessing/device-token.ts'
import { solve } from '../solve.ts'

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

test('the network around a network', () => {
  const around = {
    '198.51.100.7': '198.51.100.0/24',
    '2001:db8:7:1::/64': '2001:db8:7::/48',
    '0:0:0:0::/64': '0:0:0::/48',
    unknown: 'unknown',
  }
  for (const [network, wide] of Object.entries(around)) assert.equal(wideNetworkOf(network), wide)
})
