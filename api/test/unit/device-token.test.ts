// What a device token must look like, and which key signed it.
import assert from 'node:assert/strict'
import { parseKeyring } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { DeviceTokens, deviceTokenOf, isSigned } from '../../src/plugins/guessing/device-token.ts'

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
  assert.deepEqual(
    ids,
    tokens.map((token) => token.split('.')[0]),
  )
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
