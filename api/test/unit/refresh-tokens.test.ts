// What refresh tokens are made of.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import {
  digest,
  familyOf,
  newRefreshToken,
  newSalt,
  sessionNameOf,
  successorOf,
} from '../../src/sessions/refresh-tokens.ts'

const secretOf = (token: string) => Buffer.from(token.split('.')[2] ?? '', 'base64url')

test('a token has 256 random bits, and so has its successor', () => {
  const sessionId = randomUUID()
  const tokens = Array.from({ length: 1_000 }, () => newRefreshToken(sessionId))
  const successors = tokens.map((token) => successorOf(token, newSalt()))
  const secrets = [...tokens, ...successors].map(secretOf)
  for (const secret of secrets) assert.equal(secret.length, 32)
  assert.equal(new Set(secrets.map((secret) => secret.toString('hex'))).size, 2_000)
  // Each bit is a coin: 2,000 tosses are within 6 standard deviations of 1,000 ones.
  for (let bit = 0; bit < 256; bit += 1) {
    const ones = secrets.filter((secret) => (secret.readUInt8(bit >> 3) >> (bit & 7)) & 1).length
    assert.ok(Math.abs(ones - 1_000) < 6 * Math.sqrt(500), `bit ${bit}: ${ones}`)
  }
})

test('a token tells its session, and the digest of its family, which its successors share', () => {
  const sessionId = randomUUID()
  const token = newRefreshToken(sessionId)
  const family = { sessionId, familyHash: digest(token.split('.')[1] ?? '') }
  assert.deepEqual(familyOf(token), family)
  assert.deepEqual(familyOf(successorOf(token, newSalt())), family)
  assert.notDeepEqual(familyOf(newRefreshToken(sessionId)), family)
})

test('text of another format has no family', () => {
  const token = newRefreshToken(randomUUID())
  for (const text of [
    '',
    'x',
    `x${token}`,
    `${token}x`,
    `${token}\n`,
    token.slice(1),
    token.slice(0, -1),
    token.replace('.', '!'),
  ])
    assert.equal(familyOf(text), undefined, text)
})

test('the same token has the same successor under the same salt, as another program computes it', () => {
  const token = `${'A'.repeat(22)}.${'B'.repeat(22)}.${'C'.repeat(43)}`
  const secret = 'FqQVNNZZV0yb9HywQI5UDBZnDIRJZ8xRtmrgVYhK6IU'
  assert.equal(successorOf(token, Buffer.alloc(32, 7)), `${'A'.repeat(22)}.${'B'.repeat(22)}.${secret}`)
  assert.notEqual(successorOf(token, newSalt()), successorOf(token, newSalt()))
  assert.equal(newSalt().length, 32)
})

test('what is stored of a token is its SHA-256', () => {
  const SHA256_OF_ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  assert.equal(Buffer.from(digest('abc')).toString('hex'), SHA256_OF_ABC)
})

test('a session is called the same by all tokens of a family, and text without one by itself', () => {
  const token = newRefreshToken(randomUUID())
  assert.equal(sessionNameOf(token), Buffer.from(digest(token.split('.')[1] ?? '')).toString('base64url'))
  assert.equal(sessionNameOf(successorOf(token, newSalt())), sessionNameOf(token))
  assert.equal(sessionNameOf('abc'), 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0')
})
