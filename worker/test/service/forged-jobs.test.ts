// An attacker who writes to Redis makes up, swaps and edits jobs: none is answered or harms.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import type { PasswordClient } from '@spillway/queue/queue-client'
import { QUEUE_NAME } from '@spillway/queue/wire/job'
import { type JobRef, requestSeal, verdictKey, verdictSeal } from '@spillway/queue/wire/reply'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { Queue } from 'bullmq'
import { test } from 'vitest'
import { answerOf, clientAndWorker, clientFor, jobsAreCounted, jobsCounted, keyring, startedWorker } from '../parts.ts'
import { failureOf, jobKey, resultOf, type Space, waitingJobs } from '../space.ts'

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
  assert.deepEqual(await answerOf(await client.submit('verify', request)), { kind: 'match' })
}

const forgeries: [what: string, forge: (space: Space, job: JobRef, other: JobRef) => Promise<unknown>][] = [
  ['nothing sealed', (space, job) => rewrite(space, job, ({ sealed, ...data }) => data)],
  ['no deadline', (space, job) => rewrite(space, job, ({ deadline, ...data }) => data)],
  ['a deadline that is no number', (space, job) => rewrite(space, job, (data) => ({ ...data, deadline: 'never' }))],
  ['a list for data', (space, job) => rewrite(space, job, () => [])],
  ['nothing for data', (space, job) => rewrite(space, job, () => null)],
  [
    'an oversized payload',
    (space, job) => rewrite(space, job, (data) => ({ ...data, sealed: `test.${'A'.repeat(200_000)}` })),
  ],
  [
    'random bytes for a payload',
    (space, job) =>
      rewrite(space, job, (data) => ({ ...data, sealed: `test.${randomBytes(300).toString('base64url')}` })),
  ],
  [
    'a payload sealed under a key of its own',
    (space, job) => {
      const stranger = parseKeyring(`test:${randomBytes(32).toString('base64')}`)
      return rewrite(space, job, (data) => ({ ...data, sealed: stranger.seal(requestSeal(job), request) }))
    },
  ],
  [
    'a payload of the right key that is no request',
    (space, job) => rewrite(space, job, (data) => ({ ...data, sealed: keyring.seal(requestSeal(job), { x: 1 }) })),
  ],
  [
    'a verdict for a payload',
    (space, job) =>
      rewrite(space, job, (data) => ({ ...data, sealed: keyring.seal(verdictSeal(job), { kind: 'match' }) })),
  ],
  [
    "another job's payload",
    async (space, job, other) => {
      const { sealed } = await dataOf(space, other)
      await rewrite(space, job, (data) => ({ ...data, sealed }))
    },
  ],
  [
    'all of the data of another job',
    async (space, job, other) => {
      const data = await dataOf(space, other)
      await rewrite(space, job, () => data)
    },
  ],
  [
    'a deadline put off',
    (space, job) => rewrite(space, job, (data) => ({ ...data, deadline: job.deadline + 3_600_000 })),
  ],
  ['another name', (space, job) => space.redis.hset(jobKey(space, job.id), 'name', 'hash')],
  ['a name that there is not', (space, job) => space.redis.hset(jobKey(space, job.id), 'name', 'constructor')],
]

for (const [what, forge] of forgeries) {
  test(`a job with ${what} fails at once and is not answered`, async (t) => {
    const { space, client } = await clientFor(t)
    const other = await client.submit('verify', request)
    const pending = await client.submit('verify', request)
    await forge(space, pending.job, other.job)
    const worker = await startedWorker(space)

    assert.match(await until(() => failureOf(space, pending.job.id)), /malformed|does not open/)
    assert.equal(await space.redis.exists(verdictKey(space.prefix, pending.job.id)), 0)
    // The client may have noticed the failure already.
    const unanswered = { kind: 'refused', code: 'unavailable' }
    assert.deepEqual((await answerOf(pending, 0)) ?? unanswered, unanswered)
    assert.deepEqual(await answerOf(other), { kind: 'match' })
    await assertWorks(client)
    const forged = (await jobsCounted(worker)).filter((line) => line.includes('forged'))
    assert.match(forged.join(), /^(verify|hash|unknown) forged 1$/)
  })
}

test('a forged job is not tried again, however often it asks to be', async (t) => {
  const { space, client } = await clientFor(t)
  const queue = attackersQueue(space)
  const job = await queue.add('verify', { made: 'up' }, { attempts: 1_000_000, jobId: 'made-up' })
  const worker = await startedWorker(space)
  assert.equal(await until(() => failureOf(space, job.id ?? '')), 'the job is malformed')
  await assertWorks(client)
  await jobsAreCounted(worker, 'unknown forged 1', 'verify hashed 1')
})

test("a request replayed under an id of the attacker's fails", async (t) => {
  const { space, client } = await clientAndWorker(t)
  const pending = await client.submit('verify', request)
  assert.deepEqual(await answerOf(pending), { kind: 'match' })
  const data = await dataOf(space, pending.job)
  const replayed = await attackersQueue(space).add('verify', data, { jobId: 'replayed' })
  assert.match(await until(() => failureOf(space, replayed.id ?? '')), /does not open/)
  assert.equal(await space.redis.exists(verdictKey(space.prefix, 'replayed')), 0)
})

test('a deadline brought forward only drops the job', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  await rewrite(space, pending.job, (data) => ({ ...data, deadline: 1 }))
  await startedWorker(space)
  const result = await until(() => resultOf(space, pending.job.id))
  assert.ok(typeof result === 'object' && 'outcome' in result)
  assert.equal(result.outcome, 'expired')
  assert.equal(await answerOf(pending, 0), undefined)
})

test('a job that is in the list twice is answered all the same', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  await space.redis.lpush(`${space.prefix}:passwords:wait`, pending.job.id)
  await startedWorker(space)
  assert.deepEqual(await answerOf(pending), { kind: 'match' })
  await assertWorks(client)
})

test('an entry of the list without a job does not keep the worker from the next one', async (t) => {
  const { space, client } = await clientFor(t)
  await space.redis.lpush(`${space.prefix}:passwords:wait`, 'no-such-job', '0:0', '')
  await space.redis.hset(jobKey(space, 'no-json'), { name: 'verify', data: '{', opts: '{', timestamp: 'x' })
  await space.redis.hset(jobKey(space, 'empty'), { name: '' })
  await space.redis.lpush(`${space.prefix}:passwords:wait`, 'no-json', 'empty')
  const pending = await client.submit('verify', request)
  await startedWorker(space, { slots: 1 })
  assert.deepEqual(await answerOf(pending), { kind: 'match' })
  await assertWorks(client)
  assert.deepEqual(await waitingJobs(space), [])
})

test('the address of a reply can be changed, and then the reply is found all the same', async (t) => {
  const { space, client } = await clientFor(t)
  const pending = await client.submit('verify', request)
  await rewrite(space, pending.job, (data) => ({ ...data, replyTo: 'elsewhere', enqueuedAt: -1e15 }))
  await startedWorker(space)
  assert.deepEqual(await answerOf(pending), { kind: 'match' })
})
