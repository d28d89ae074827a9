// What calls to the process beside cost in relation to each other, and the mean of those that are outstanding.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { costOf } from '../../src/application/beside/backend.ts'
import { createCalls } from '../../src/application/beside/calls.ts'

const policy = { algorithm: 'argon2id', memoryKib: 19_456, time: 2, parallelism: 1 } as const
const bcryptOf = (cost: number) => `$2b$${String(cost).padStart(2, '0')}$CCCCCCCCCCCCCCCCCCCCC.`

test('a hash costs what its setting, its stored hash or its policy says, else as the policy', () => {
  const argon2id = costOf({ password: 'x', policy }, policy)
  const twelve = costOf({ password: '', exact: { setting: bcryptOf(12), password: '' } }, policy)
  assert.equal(costOf({ password: 'x', storedHash: null, policy }, policy), argon2id)
  assert.equal(costOf({ password: 'x', storedHash: 'of another system' }, policy), argon2id)
  assert.equal(costOf({ password: 'x', policy: { algorithm: 'bcrypt', cost: 12 } }, policy), twelve)
  assert.equal(costOf({ password: 'x', storedHash: `${bcryptOf(12)}${'.'.repeat(31)}` }, policy), twelve)
  assert.equal(costOf({ password: '', exact: { setting: bcryptOf(11), password: '' } }, policy), twelve / 2)
  assert.equal(costOf({ password: 'x', policy: { ...policy, time: 4 } }, policy), 2 * argon2id)
  assert.ok(twelve / argon2id > 10 && twelve / argon2id < 50, `${twelve / argon2id}`)
})

test('the mean is of calls that wait or are in hand', () => {
  const calls = createCalls()
  assert.equal(calls.meanCost(), undefined)
  const [cheap, dear] = [calls.add({ password: 'x' }, 1), calls.add({ password: 'x' }, 9)]
  assert.equal(calls.meanCost(), 5)
  assert.equal(calls.next(), cheap)
  assert.equal(calls.meanCost(), 5)
  assert.equal(calls.answered(cheap.id, { kind: 'mismatch' }), 1)
  assert.equal(calls.answered(cheap.id, { kind: 'mismatch' }), undefined)
  assert.equal(calls.meanCost(), 9)
  calls.next()
  calls.returned(new Error('ended'))
  assert.equal(calls.meanCost(), 9)
  calls.forget(dear)
  assert.equal(calls.meanCost(), undefined)
})
