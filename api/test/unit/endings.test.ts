// What is recorded when a request with a password job has ended.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { ApiError } from '../../src/http/problems.ts'
import { recordEnding } from '../../src/passwords/endpoint.ts'

test('the log names an account whose hash no worker verifies, and no other refusal', () => {
  for (const [reason, logged] of [
    ['unsupported_hash', [{ userId: 'an-account', requestId: 'a-request' }]],
    ['wrong_password', []],
  ] as const) {
    const lines: unknown[] = []
    const log = { error: (facts: unknown) => void lines.push(facts) }
    recordEnding({ audit: { record: () => undefined }, log }, 'login', endingWith(reason), { userId: 'an-account' })
    assert.deepEqual(lines, logged)
  }
})

function endingWith(reason: 'unsupported_hash' | 'wrong_password') {
  const error = new ApiError('invalid_credentials', { reason })
  const origin = { id: 'an-id', requestId: 'a-request', client: { ip: '192.0.2.1', device: '' } }
  return { ...origin, kind: 'refused', error } as const
}
