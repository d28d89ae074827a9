// Held jobs go before deferred ones, and these get their turn all the same.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/jobs/keys'
import { test } from 'vitest'
import { answerOf, readyClient, startedWorker } from '../parts.ts'
import { jobKey, spaceFor, waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }

test('a held job goes before the deferred ones, and promotes the two that have waited longest', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  const first = await client.submit('verify', request, 'deferred')
  const second = await client.submit('verify', request, 'deferred')
  const third = await client.submit('verify', request, 'deferred')
  const newcomer = await client.submit('verify', request, 'held')
  await until(async () => (await waitingJobs(space)).length === 3)
  assert.deepEqual(await waitingJobs(space), [second.job.id, first.job.id, newcomer.job.id])
  assert.deepEqual(await space.redis.zrange(queueKey(space.prefix, 'prioritized'), 0, '-1'), [third.job.id])

  await startedWorker(space)
  for (const pending of [newcomer, first, second, third]) assert.deepEqual(await answerOf(pending), { kind: 'match' })
})

test('an id among the deferred jobs that is no job is left out', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  const deferred = queueKey(space.prefix, 'prioritized')
  await space.redis.zadd(deferred, 1, 'no-such-job')
  const real = await client.submit('verify', request, 'deferred')
  await client.submit('verify', request)
  await until(async () => (await waitingJobs(space)).includes(real.job.id))
  assert.equal(await space.redis.zcard(deferred), 0)
})

test('a deferred job whose client goes away is cancelled, and the next one takes its turn', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  const [leaving, staying] = [
    await client.submit('verify', request, 'deferred'),
    await client.submit('verify', request, 'deferred'),
  ]
  await answerOf(leaving, 0)
  assert.equal(await client.cancel(leaving.job), true)
  const deferred = queueKey(space.prefix, 'prioritized')
  assert.deepEqual(await space.redis.zrange(deferred, 0, '-1'), [staying.job.id])
  assert.equal(await space.redis.exists(jobKey(space, leaving.job.id)), 0)
  assert.equal(await client.cancel(leaving.job), false)

  const newcomer = await client.submit('verify', request)
  await until(async () => (await waitingJobs(space)).length === 2)
  assert.deepEqual(await waitingJobs(space), [staying.job.id, newcomer.job.id])
})
