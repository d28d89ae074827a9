import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Lockout } from '../../src/operators/access.ts'

function scene() {
  let now = 0
  const lockout = new Lockout(() => now)
  return {
    lockout,
    pass: (ms: number) => {
      now += ms
    },
    fail: (address: string, times: number) => {
      for (let time = 0; time < times; time++) lockout.failed(address)
    },
  }
}

test('an address may fail nine times a minute, and the tenth locks it out until a minute after', () => {
  const { lockout, pass, fail } = scene()
  fail('a', 9)
  assert.equal(lockout.remainingMs('a'), 0)
  pass(30_000)
  fail('a', 1)
  assert.equal(lockout.remainingMs('a'), 30_000)
  pass(30_000)
  assert.equal(lockout.remainingMs('a'), 0)
})

test('one address that guesses locks out no other', () => {
  const { lockout, fail } = scene()
  fail('a', 10)
  assert.equal(lockout.remainingMs('b'), 0)
})

test('guessing from many addresses locks out those that have not logged in before, and only those', () => {
  const { lockout, fail } = scene()
  lockout.succeeded('operator')
  for (let address = 0; address < 10; address++) fail(`guesser ${address}`, 6)
  assert.ok(lockout.remainingMs('newcomer') > 0)
  assert.equal(lockout.remainingMs('operator'), 0)
})

test('also an address that has logged in before is locked out when it guesses itself', () => {
  const { lockout, fail } = scene()
  lockout.succeeded('operator')
  fail('operator', 10)
  assert.ok(lockout.remainingMs('operator') > 0)
})

test('failures are forgotten after a minute, whoever made them', () => {
  const { lockout, pass, fail } = scene()
  for (let address = 0; address < 7; address++) fail(`guesser ${address}`, 9)
  assert.ok(lockout.remainingMs('newcomer') > 0)
  pass(90_000)
  assert.equal(lockout.remainingMs('newcomer'), 0)
  fail('guesser 0', 9)
  assert.equal(lockout.remainingMs('guesser 0'), 0)
})

test('the hundred addresses that logged in last are known, and no others', () => {
  const { lockout, fail } = scene()
  lockout.succeeded('first')
  for (let address = 1; address < 100; address++) lockout.succeeded(`operator ${address}`)
  fail('guesser', 60)
  assert.equal(lockout.remainingMs('first'), 0)
  lockout.succeeded('first')
  lockout.succeeded('one more')
  assert.ok(lockout.remainingMs('operator 1') > 0)
  for (const address of ['first', 'operator 2', 'operator 99', 'one more']) {
    assert.equal(lockout.remainingMs(address), 0, address)
  }
})
