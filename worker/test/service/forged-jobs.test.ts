// An attacker who writes to Redis makes up, swaps and edits jobs: none is answered or harms.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import type { PasswordClient } from '@spillway/queue/client'
import { QUEUE_NAME } from '@spillway/queue/wire/job'
import { type JobRef, requestSeal, resultKey, resultSeal } from '@spillway/queue/wire/reply'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { Queue } from 'bullmq'
import { test } from 'vitest'
import {
  clientAndWorker,
  clientFor,
  jobsAreCounted,
  jobsCounted,
  keyring,
  resultOf,
  startedWorker,
  submit,
} from '../parts.ts'
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
    'a result for a payload',
    (space, job) =>
      rewrite(space, job, (data) => ({ ...data, sealed: keyring.seal(resultSeal(job), { kind: 'match' }) })),
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
  ['a deadline brought forward', (space, job) => rewrite(space, job, (data) => ({ ...data, deadline: 1 }))],
  ['another name', (space, job) => space.redis.hset(jobKey(space, job.id), 'name', 'hash')],
  ['a name that there is not', (space, job) => space.redis.hset(jobKey(space, job.id), 'name', 'constructor')],
]

for (const [what, forge] of forgeries) {
  test(`a job with ${what} fails at once and is not answered`, async (t) => {
    const { space, client } = await clientFor(t)
    const other = await submit(client, 'verify', request)
    const pending = await submit(client, 'verify', request)
    await forge(space, pending.job, other.job)
    const worker = await startedWorker(space)

    assert.match(await whenFailed(space, pending.job.id), /malformed|does not open/)
    assert.equal(await space.redis.exists(resultKey(space.prefix, pending.job.id)), 0)
    assert.equal(await resultOf(pending, 0), undefined)
    assert.deepEqual(await resultOf(other), { kind: 'match' })
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
