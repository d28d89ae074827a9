// How long a job is waited for, by whom, and what becomes of it when nobody waits any more.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { PasswordClientError } from '@spillway/queue/errors'
import { verdictKey } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { answerOf, clientAndWorker, clientFor, readyClient, startedWorker } from '../parts.ts'
import { activeJobs, jobKey, resultOf, spaceFor, waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }
const match = { kind: 'match' }
const patience = new AbortController().signal

function isAborted(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'wait_aborted'
}

test.concurrent('when the wait runs out first there is no answer, and the job goes on', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  const startedAt = performance.now()
  assert.equal(await answerOf(pending, 150), undefined)
  assert.ok(performance.now() - startedAt >= 145)
  assert.deepEqual(await waitingJobs(space), [pending.job.id])

  await startedWorker(space)
  assert.deepEqual(await answerOf(await client.resume(pending.job)), match)
})

test.concurrent('a verdict that is there already is found without any wait', async (t) => {
  const { space, client } = await clientAndWorker(t)
  const pending = await client.submit('verify', request)
  await until(() => space.redis.exists(verdictKey(space.prefix, pending.job.id)))
  assert.deepEqual(await answerOf(pending, 0), match)
  assert.deepEqual(await answerOf(await client.resume(pending.job), 0), match)
})

test.concurrent('a caller that goes away ends its wait at once, and the job is cancelled', async (t) => {
  const { space, client } = await clientFor(t)
  const [leaving, staying] = [await client.submit('verify', request), await client.submit('verify', request)]
  const caller = new AbortController()
  const answer = leaving.answer({ waitMs: 60_000, signal: caller.signal })
  caller.abort()
  await assert.rejects(answer, isAborted)
  assert.equal(await client.cancel(leaving.job), true)
  assert.deepEqual(await waitingJobs(space), [staying.job.id])
  assert.equal(await space.redis.exists(jobKey(space, leaving.job.id)), 0)
  assert.equal(await client.cancel(leaving.job), false)

  await startedWorker(space)
  assert.deepEqual(await answerOf(staying), match)
})

test.concurrent('a caller that was gone before the wait began is not waited for', async (t) => {
  const { client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  await assert.rejects(pending.answer({ waitMs: 60_000, signal: AbortSignal.abort() }), isAborted)
})

test.concurrent('a job in hand is not cancelled', async (t) => {
  const { space, client } = await clientAndWorker(t)
  const pending = await client.submit('verify', { ...request, storedHash: '$spillway-wait$300$' })
  await until(async () => (await activeJobs(space)).length === 1)
  assert.equal(await client.cancel(pending.job), false)
  assert.deepEqual(await answerOf(pending), match)
})

test.concurrent('a job that was answered is not cancelled, and its verdict stays', async (t) => {
  const { space, client } = await clientAndWorker(t)
  const pending = await client.submit('verify', request)
  await until(() => resultOf(space, pending.job.id))
  assert.equal(await client.cancel(pending.job), false)
  assert.deepEqual(await answerOf(pending), match)
})

test.concurrent('a lost notification is made up for at the end of the wait', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  const key = jobKey(space, pending.job.id)
  const data = JSON.parse((await space.redis.hget(key, 'data')) ?? '')
  await space.redis.hset(key, 'data', JSON.stringify({ ...data, replyTo: 'nobody' }))
  await startedWorker(space)
  await until(() => space.redis.exists(verdictKey(space.prefix, pending.job.id)))
  assert.deepEqual(await answerOf(pending, 100), match)
})

test.concurrent('any client redeems a verdict: before it is there, when it is there, and without its own job', async (t) => {
  const space = spaceFor(t)
  const [submitting, early, late] = [await readyClient(space), await readyClient(space), await readyClient(space)]
  const pending = await submitting.submit('verify', request)
  const waiting = answerOf(await early.resume(pending.job))
  await startedWorker(space)
  assert.deepEqual(await waiting, match)
  assert.deepEqual(await answerOf(await late.resume(pending.job), 0), match)
  assert.deepEqual(await answerOf(pending), match)
})

test.concurrent('several callers of one client wait for the same job, and one that goes away takes nothing from the others', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  const caller = new AbortController()
  const leaving = (await client.resume(pending.job)).answer({ waitMs: 60_000, signal: caller.signal })
  const others = [
    answerOf(pending),
    answerOf(await client.resume(pending.job)),
    answerOf(await client.resume(pending.job)),
  ]
  caller.abort()
  await assert.rejects(leaving, isAborted)
  await startedWorker(space)
  assert.deepEqual(await Promise.all(others), [match, match, match])
})

test.concurrent('a verdict is kept until the deadline of its job, and then gone', async (t) => {
  const { space, client } = await clientFor(t, { jobLifeMs: 6_000 })
  await startedWorker(space)
  const pending = await client.submit('verify', request)
  assert.ok(await pending.answer({ waitMs: 6_000, signal: patience }))
  const key = verdictKey(space.prefix, pending.job.id)
  // Both by Redis's clock, which the worker has read.
  const expiresAt = await space.redis.pexpiretime(key)
  assert.ok(Math.abs(expiresAt - pending.job.deadline) < 2_000, `until ${expiresAt}, not ${pending.job.deadline}`)
  await until(async () => (await space.redis.exists(key)) === 0)
  assert.equal(await answerOf(await client.resume(pending.job), 0), undefined)
})
