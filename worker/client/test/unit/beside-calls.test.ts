// The order in which calls go to the process beside an application.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { Calls } from '../../src/application/beside/calls.ts'

test('a call that could only be answered too late is not begun, unless nothing else is in hand', () => {
  const calls = new Calls()
  const [first, second, third] = [1_000, 1_100, 1_200].map((endsAt) => calls.add({ password: 'x' }, endsAt))
  assert.equal(calls.next(2_000), first)
  assert.equal(calls.next(1_100), third)
  assert.equal(calls.next(1_100), undefined)
  assert.equal(calls.waiting, 1)
  assert.equal(calls.next(1_099), second)
})
