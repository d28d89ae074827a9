// Scenarios that look for limits and causes.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { scenarios } from '../../scenarios/scenarios.ts'
import { testShortRuns } from '../short-run.ts'

const named = {
  ramp: ['in-process, registration', 'spillway, token'],
  'scale-out': ['spillway, 2 gateways'],
  redis: ['spillway, token'],
  'several-redis': ['spillway, 2 Redis'],
  idle: ['in-process, argon2id'],
  service: ['spillway, token'],
  efficiency: ['spillway, bcrypt', 'spillway, argon2id'],
  profile: ['spillway, token'],
  engines: ['@node-rs/argon2, argon2id', 'crypto.pbkdf2, pbkdf2', 'crypto.scrypt, scrypt'],
}
const elsewhere = ['login-100', 'mixed-100', 'stress-5000', 'spike']

await testShortRuns(
  scenarios.filter(({ name }) => name in named),
  named,
)

test('every scenario is tested', () => {
  assert.deepEqual(scenarios.map(({ name }) => name).sort(), [...elsewhere, ...Object.keys(named)].sort())
})
