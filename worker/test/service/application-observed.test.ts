// What an application is told of its calls, and the trace to which workers belong.
import assert from 'node:assert/strict'
import type { ObservedCall } from '@spillway/client/application/types'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { argon2id, passwordsOf, rejectsWith } from '../application.ts'
import { startedWorker } from '../parts.ts'
import { jobKey, spaceFor, waitingJobs } from '../space.ts'

test('each call is observed at its end, with how it ended and what hashed', async (t) => {
  const space = spaceFor(t)
  await startedWorker(space)
  const calls: ObservedCall[] = []
  const passwords = passwordsOf(space, { onCall: (call) => calls.push(call) })
  await until(() => passwords.capacity().slots > 0, { what: 'a worker' })
  const stored = await passwords.hash('right')
  await passwords.verify('right', stored)
  await passwords.verify('wrong', stored)
  assert.equal(await passwords.verify('x', 'plain'), false)
  await rejectsWith('expired', passwords.verify('x', null, { deadline: Date.now() - 1 }))
  await assert.rejects(passwords.verify('x', null, { signal: AbortSignal.abort(new Error('of no use')) }), /of no use/)
  await assert.rejects(passwords.verify('x', null, { deadline: Number.NaN }), TypeError)
  assert.deepEqual(
    calls.map(({ call, outcome }) => `${call} ${outcome}`),
    ['hash hashed', 'verify match', 'verify mismatch', 'verify unsupported_hash', 'verify expired', 'verify aborted'],
  )
  assert.ok(calls.every(({ by, ms }) => by === 'workers' && ms >= 0))
})

test('an observer that throws harms no call, and is logged', async (t) => {
  const space = spaceFor(t)
  await startedWorker(space)
  const logged: string[] = []
  const log = { error: (_facts: object, message: string) => logged.push(message), warn() {}, info() {}, debug() {} }
  const onCall = () => {
    throw new Error('of the observer')
  }
  const passwords = passwordsOf(space, { onCall, log })
  await passwords.hash('x')
  assert.deepEqual(logged, ['onCall failed'])
})

test('the trace context of a call is with its job, and nothing else that is given for one', async (t) => {
  const space = spaceFor(t)
  const context = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  for (const given of [context, undefined, '', `${context}x`, 'secret']) {
    const passwords = passwordsOf(space, { traceparent: () => given })
    await until(() => passwords.capacity().known)
    const caller = new AbortController()
    const ended = assert.rejects(passwords.hash('x', argon2id, { signal: caller.signal }), /was seen/)
    const [id = ''] = await until(async () => {
      const jobs = await waitingJobs(space)
      return jobs.length > 0 ? jobs : undefined
    })
    const { tm } = JSON.parse((await space.redis.hget(jobKey(space, id), 'opts')) ?? '')
    assert.equal(tm, given === context ? JSON.stringify({ traceparent: context }) : undefined)
    caller.abort(new Error('was seen'))
    await ended
    await until(async () => (await waitingJobs(space)).length === 0)
  }
})
