// An attacker who writes to Redis makes up, swaps and edits jobs: none is answered or harms.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import type { PasswordClient } from '@spillway/queue/client'
import { QUEUE_NAME } from '@spillway/queue/wire/job'
import { type JobRef, resultKey } from '@spillway/queue/wire/reply'
import { Queue } from 'bullmq'
import { test } from 'vitest'
import { clientAndWorker, clientFor, jobsAreCounted, resultOf, startedWorker, submit } from '../parts.ts'
import { completionOf, jobKey, type Space, whenFailed } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }

/** Changes what is stored of a waiting job. */
async function rewrite(space: Space, job: JobRef, change: (data: Record<string, unknown>) => unknown): Promise<void> {
  const data: Record<string, unknown> = JSON.parse((await space.redis.hget(jobKey(space, job.id), 'data')) ?? '')
  await space.redis.hset(jobKey(space, job.id), 'data', JSON.stringify(change(data)))
}

async function dataOf(space: Space, job: JobRef): Promise<Record<string, unknown>> {
  return JSON.parse((await space.redis.hget(jobKey(space, job.id), 'data')) ?? '')
}

/** An attacker's own way into the queue. */
function attackersQueue(space: Space): Queue {
  const queue = new Queue(QUEUE_NAME, { connection: space.redis, prefix: space.prefix })
  space.closing(() => queue.close())
  return queue
}

/** The worker still does what it is there for. */
async function assertWorks(client: PasswordClient): Promise<void> {
  assert.deepEqual(await resultOf(await submit(client, 'verify', request)), { kind: 'match' })
}

test("a job with another job's payload fails at once and is not answered", async (t) => {
  const { space, client } = await clientFor(t)
  const other = await submit(client, 'verify', request)
  const pending = await submit(client, 'verify', request)
  const { sealed } = await dataOf(space, other.job)
  await rewrite(space, pending.job, (data) => ({ ...data, sealed }))
  const worker = await startedWorker(space)

  assert.match(await whenFailed(space, pending.job.id), /does not open/)
  assert.equal(await space.redis.exists(resultKey(space.prefix, pending.job.id)), 0)
  assert.equal(await resultOf(pending, 0), undefined)
  assert.deepEqual(await resultOf(other), { kind: 'match' })
  await assertWorks(client)
  await jobsAreCounted(worker, 'verify forged 1', 'verify hashed 2')
})

test('a forged job is not tried again, however often it asks to be', async (t) => {
  const { space, client } = await clientFor(t)
  const queue = attackersQueue(space)
  const job = await queue.add('verify', { made: 'up' }, { attempts: 1_000_000, jobId: 'made-up' })
  const worker = await startedWorker(space)
  assert.equal(await whenFailed(space, job.id ?? ''), 'the job is malformed')
  await assertWorks(client)
  await jobsAreCounted(worker, 'unknown forged 1', 'verify hashed 1')
})

test("a request replayed under an id of the attacker's fails", async (t) => {
  const { space, client } = await clientAndWorker(t)
  const pending = await submit(client, 'verify', request)
  assert.deepEqual(await resultOf(pending), { kind: 'match' })
  const data = await dataOf(space, pending.job)
  const replayed = await attackersQueue(space).add('verify', data, { jobId: 'replayed' })
  assert.match(await whenFailed(space, replayed.id ?? ''), /does not open/)
  assert.equal(await space.redis.exists(resultKey(space.prefix, 'replayed')), 0)
})

test('a presence that is cut short only has the job skipped', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await submit(client, 'verify', request)
  await rewrite(space, pending.job, (data) => ({ ...data, presentUntil: 1 }))
  await startedWorker(space)
  const result = await until(() => completionOf(space, pending.job.id))
  assert.ok(typeof result === 'object' && 'outcome' in result)
  assert.equal(result.outcome, 'skipped')
  assert.equal(await resultOf(pending, 0), undefined)
})

test('the address of a reply can be changed, and then the result is found at the end of the wait', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await submit(client, 'verify', request)
  await rewrite(space, pending.job, (data) => ({ ...data, replyTo: 'elsewhere', enqueuedAt: -1e15 }))
  await startedWorker(space)
  await until(() => space.redis.exists(resultKey(space.prefix, pending.job.id)))
  assert.deepEqual(await until(() => resultOf(pending, 50)), { kind: 'match' })
})
