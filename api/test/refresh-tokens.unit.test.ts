// What refresh tokens are made of.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { newRefreshToken, newSalt, successorOf } from '../src/sessions/refresh-tokens.ts'

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
