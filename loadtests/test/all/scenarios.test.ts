// Each scenario of the report, by some measurements of its plan.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { scenarios } from '../../src/run.ts'
import { testShortRuns } from '../short-run.ts'

const named = {
  'login-100': ['spillway, argon2id'],
  'stress-5000': ['in-process, argon2id', 'spillway, token'],
  ramp: ['in-process, registration', 'spillway, token'],
  spike: ['spillway, argon2id'],
  idle: ['in-process, argon2id'],
  engines: ['@node-rs/argon2, argon2id', 'crypto.pbkdf2, pbkdf2', 'crypto.scrypt, scrypt'],
}

await testShortRuns(scenarios, named)

test('every scenario is tested', () => {
  assert.deepEqual(scenarios.map(({ name }) => name).sort(), Object.keys(named).sort())
})
