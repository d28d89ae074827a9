// Calls without a deadline wait for room, in their order.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { PasswordsError } from '../../src/application/passwords-error.ts'
import { Patience } from '../../src/application/running-calls.ts'

const busy = new PasswordsError('busy', 'the answer would come too late')
const never = new AbortController().signal

test('a call that is refused as busy is let in later, before those that came after it', async () => {
  let room = 1
  const begun: number[] = []
  const patience = new Patience(async () => {
    if (room === 0) throw busy
    room -= 1
  })
  const calls = [1, 2, 3].map((call) =>
    patience.attempt(async () => {
      begun.push(call)
      room += 1
      return call
    }, never),
  )
  assert.deepEqual(await Promise.all(calls), [1, 2, 3])
  assert.deepEqual(begun, [1, 2, 3])
})

test('an attempt that ran out of time is made again', async () => {
  const patience = new Patience(async () => undefined)
  let attempts = 0
  const perform = async () => {
    attempts += 1
    return attempts < 3 ? undefined : 'answer'
  }
  assert.equal(await patience.attempt(perform, never), 'answer')
})

test('where nothing hashes a call is refused as any other, and the next one asks again', async () => {
  let works = false
  const patience = new Patience(async () => {
    if (!works) throw new PasswordsError('no_worker', 'no worker is alive')
  })
  await assert.rejects(
    patience.attempt(async () => 'answer', never),
    { code: 'no_worker' },
  )
  works = true
  assert.equal(await patience.attempt(async () => 'answer', never), 'answer')
})

test('a signal ends the waiting', async () => {
  const patience = new Patience(async () => {
    throw busy
  })
  const stop = new AbortController()
  const waiting = patience.attempt(async () => 'answer', stop.signal)
  stop.abort()
  assert.equal(await waiting, undefined)
})
