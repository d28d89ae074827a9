// Ended jobs leave nothing in a client's memory, a worker's, or Redis, on rare paths as well.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import type { JobRef, PasswordClient } from '@spillway/queue/queue-client'
import { RedisClock } from '@spillway/queue/redis/clock'
import { test } from 'vitest'
import { Delivery } from '../../src/consumer/deliver.ts'
import { forgotten } from '../garbage.ts'
import { answerOf, clientFor, keepingLog, readyClient, startedWorker, submitted } from '../parts.ts'
import { failureOf, jobKey, redisProxy, resultOf, type Space, spaceFor } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }

/** Ways in which a job ends for a client; each gives the job as this client had it */
const ends: [how: string, end: (space: Space, client: PasswordClient) => Promise<JobRef>][] = [
  [
    'is answered',
    async (space, client) => {
      await startedWorker(space)
      const pending = await submitted(client)
      await answerOf(pending)
      return pending.job
    },
  ],
  [
    'outlasts its wait',
    async (_space, client) => {
      const pending = await submitted(client)
      assert.equal(await answerOf(pending, 20), undefined)
      return pending.job
    },
  ],
  [
    'is given a ticket at once',
    async (_space, client) => {
      const pending = await client.submit('verify', request, { lane: 'deferred' })
      assert.equal(await answerOf(pending, 0), undefined)
      return pending.job
    },
  ],
  [
    'is cancelled',
    async (_space, client) => {
      const pending = await submitted(client)
      await assert.rejects(pending.answer({ waitMs: 60_000, signal: AbortSignal.timeout(20) }))
      assert.equal(await client.cancel(pending.job), true)
      return pending.job
    },
  ],
  [
    'is redeemed',
    async (space, client) => {
      await startedWorker(space)
      const job = await jobOfAnother(space)
      await answerOf(await client.resume(job))
      return job
    },
  ],
  [
    'is redeemed too early',
    async (space, client) => {
      const job = await jobOfAnother(space)
      assert.equal(await answerOf(await client.resume(job), 20), undefined)
      return job
    },
  ],
  [
    'cannot be redeemed for want of Redis',
    async (space) => {
      const proxy = await redisProxy(space)
      const client = await readyClient(space, { redisUrl: proxy.url })
      const job = await jobOfAnother(space)
      proxy.refuse()
      await until(() => !client.isReady())
      await assert.rejects(client.resume(job))
      return job
    },
  ],
  [
    'is redeemed by somebody who goes away',
    async (space, client) => {
      const job = await jobOfAnother(space)
      const pending = await client.resume(job)
      await assert.rejects(pending.answer({ waitMs: 60_000, signal: AbortSignal.timeout(20) }))
      return job
    },
  ],
]

for (const [how, end] of ends) {
  test.concurrent(`a job that ${how} is forgotten by its client`, async (t) => {
    const space = spaceFor(t)
    await forgotten(await weakly(end(space, await readyClient(space))))
  })
}

test.concurrent('a verdict that has been delivered is forgotten by its worker', async (t) => {
  const { redis, prefix } = spaceFor(t)
  const log = createLogger({ service: 'test', level: 'silent' })
  const delivery = new Delivery({ redis, prefix, clock: new RedisClock(), log })
  const deliver = async () => {
    const delivered = delivery.deliver({ id: 'a', name: 'verify', deadline: Date.now() + 500, replyTo: 'b' }, 'sealed')
    await delivered
    return new WeakRef(delivered)
  }
  await forgotten(await deliver())
  await delivery.settled()
})

test.concurrent('jobs that failed, expired or were refused are no longer in the hands of a worker, which hands none of them back', async (t) => {
  const { space, client } = await clientFor(t)
  const [forged, expired, refused] = [
    await client.submit('verify', request),
    await client.submit('verify', request),
    await client.submit('verify', { ...request, storedHash: 'unsupported' }),
  ]
  await rewrite(space, forged.job, { sealed: 'made up' })
  await rewrite(space, expired.job, { deadline: 1 })
  const { lines, log } = keepingLog()
  const worker = await startedWorker(space, { log })
  await answerOf(refused)
  await until(() => failureOf(space, forged.job.id))
  await until(() => resultOf(space, expired.job.id))

  const metrics = async () => await (await fetch(`${worker.opsUrl}/metrics`)).text()
  await until(async () => /^spillway_worker_slots_busy 0$/m.test(await metrics()))
  await worker.close()
  const requeued = lines.filter(({ msg }) => msg.includes('requeued'))
  assert.deepEqual(requeued, [])
})

test.concurrent('of jobs that were redeemed, forged, refused or cancelled no key stays beyond their deadline', async (t) => {
  const space = spaceFor(t)
  const [client, elsewhere] = [await readyClient(space, { jobLifeMs: 15_000 }), await readyClient(space)]
  const [redeemed, forged, refused, left] = [
    await client.submit('verify', request),
    await client.submit('verify', request),
    await client.submit('verify', { ...request, storedHash: 'unsupported' }),
    await client.submit('verify', request, { lane: 'deferred' }),
  ]
  await rewrite(space, forged.job, { sealed: 'made up' })
  // Nobody waits for it any more: else it would be taken for lost, and added again.
  await answerOf(left, 0)
  assert.equal(await client.cancel(left.job), true)
  const early = await elsewhere.resume(redeemed.job)
  const worker = await startedWorker(space)
  await answerOf(early)
  await answerOf(refused)
  await until(() => failureOf(space, forged.job.id))
  await worker.close()
  // The codes of a worker's keys stay for a minute after its end.
  const stays = ['passwords:', 'line', 'canary'].map((name) => `${space.prefix}:${name}`)
  const isLeft = (key: string) => !stays.some((name) => key.startsWith(name)) || key === jobKey(space, left.job.id)
  await until(async () => !(await space.redis.keys(`${space.prefix}*`)).some(isLeft), { what: 'no key that is left' })
})

/** A job that another client added, as its ticket tells of it. */
async function jobOfAnother(space: Space): Promise<JobRef> {
  const { job } = await submitted(await readyClient(space))
  return { ...job }
}

async function weakly(job: Promise<JobRef>): Promise<WeakRef<JobRef>> {
  return new WeakRef(await job)
}

/** Changes what is stored of a waiting job. */
async function rewrite(space: Space, { id }: JobRef, change: object): Promise<void> {
  const data = JSON.parse((await space.redis.hget(jobKey(space, id), 'data')) ?? '')
  await space.redis.hset(jobKey(space, id), 'data', JSON.stringify({ ...data, ...change }))
}
