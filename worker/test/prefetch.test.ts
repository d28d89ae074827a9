// A worker that has more to do than it can fetches a job ahead, and no other does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@spillway/local/testing'
import { answerOf, readyClient, startedWorker } from './parts.ts'
import { activeJobs, spaceFor } from './space.ts'

const request = { password: 'right', storedHash: '$spillway-wait$100$' }

test('while jobs wait, one more than there are slots is in hand, but no more are hashed at a time', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  const jobs = await Promise.all(Array.from({ length: 12 }, () => client.submit('verify', request)))
  const startedAt = performance.now()
  await startedWorker(space, { slots: 2 })
  await until(async () => (await activeJobs(space)).length === 3, { what: 'a job ahead of two slots' })
  for (const job of jobs) assert.deepEqual(await answerOf(job), { kind: 'match' })
  assert.ok(performance.now() - startedAt >= 600, 'twelve hashes of 100 ms in two slots take no less')
})

test('a job that did not have to wait leaves the next one to whoever has a slot for it', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  await startedWorker(space, { slots: 1 })
  const backlog = await Promise.all(Array.from({ length: 6 }, () => client.submit('verify', request)))
  for (const job of backlog) await answerOf(job)
  assert.deepEqual(await answerOf(await client.submit('verify', request)), { kind: 'match' })

  const long = { ...request, storedHash: '$spillway-wait$1000$' }
  const [first, second] = [await client.submit('verify', long), await client.submit('verify', request)]
  await until(async () => (await activeJobs(space)).length === 1)
  await startedWorker(space, { slots: 1 })
  assert.deepEqual(await answerOf(second), { kind: 'match' })
  assert.deepEqual(await activeJobs(space), [first.job.id], 'the second was answered while the first was hashed')
  await answerOf(first)
})
