// Ended jobs leave nothing in a client's memory, a worker's, or Redis, on rare paths as well.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import type { JobRef, PasswordClient } from '@spillway/queue/client'
import { test } from 'vitest'
import { forgotten } from '../garbage.ts'
import { clientFor, keepingLog, readyClient, resultOf, startedWorker, submit, submitted } from '../parts.ts'
import { completionOf, jobKey, redisProxy, type Space, spaceFor, whenFailed } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }
/** Clients and workers estimate Redis's clock, each by itself. */
const CLOCKS_MS = 5_000

/** Ways in which a job ends for a client; each gives the job as this client had it */
const ends: [how: string, end: (space: Space, client: PasswordClient) => Promise<JobRef>][] = [
  [
    'is answered',
    async (space, client) => {
      await startedWorker(space)
      const pending = await submitted(client)
      await resultOf(pending)
      return pending.job
    },
  ],
  [
    'outlasts its wait',
    async (_space, client) => {
      const pending = await submitted(client)
      assert.equal(await resultOf(pending, 20), undefined)
      return pending.job
    },
  ],
  [
    'is removed',
    async (_space, client) => {
      const pending = await submitted(client)
      await assert.rejects(pending.result(60_000, AbortSignal.timeout(20)))
      assert.equal(await client.remove(pending.job), true)
      return pending.job
    },
  ],
  [
    'is redeemed',
    async (space, client) => {
      const job = await jobOfAnother(space)
      await client.present(job, 60_000)
      const redeemed = await client.resume(job)
      await startedWorker(space)
      assert.ok(await resultOf(redeemed))
      return job
    },
  ],
  [
    'is redeemed too early',
    async (space, client) => {
      const job = await jobOfAnother(space)
      assert.equal(await resultOf(await client.resume(job), 20), undefined)
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
      await assert.rejects(pending.result(60_000, AbortSignal.timeout(20)))
      await client.left(job)
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

test.concurrent('jobs that failed, were skipped or refused are no longer in the hands of a worker, which hands none of them back', async (t) => {
  const { space, client } = await clientFor(t)
  const [forged, skipped, refused] = [
    await submit(client, 'verify', request),
    await submit(client, 'verify', request, { presentMs: 0 }),
    await submit(client, 'verify', { ...request, storedHash: 'unsupported' }),
  ]
  await forge(space, forged.job)
  const { lines, log } = keepingLog()
  const worker = await startedWorker(space, { log })
  await resultOf(refused)
  await whenFailed(space, forged.job.id)
  await until(() => completionOf(space, skipped.job.id))

  const metrics = async () => await (await fetch(`${worker.opsUrl}/metrics`)).text()
  await until(async () => /^spillway_worker_slots_busy 0$/m.test(await metrics()))
  await worker.close()
  const requeued = lines.filter(({ msg }) => msg.includes('requeued'))
  assert.deepEqual(requeued, [])
})

test.concurrent('of jobs that were redeemed, forged, refused, skipped or removed no key stays beyond their deadline', async (t) => {
  const space = spaceFor(t)
  const [client, elsewhere] = [await readyClient(space), await readyClient(space)]
  const [redeemed, forged, refused, left] = [
    await submit(client, 'verify', request, { presentMs: 0 }),
    await submit(client, 'verify', request),
    await submit(client, 'verify', { ...request, storedHash: 'unsupported' }),
    await submit(client, 'verify', request, { place: 'ticketed' }),
  ]
  const { job: skipped } = await submit(client, 'verify', request, { presentMs: 0 })
  await forge(space, forged.job)
  assert.equal(await client.remove(left.job), true)
  await elsewhere.present(redeemed.job, 120_000)
  const early = await elsewhere.resume(redeemed.job)
  const worker = await startedWorker(space)
  assert.ok(await resultOf(early))
  assert.ok(await resultOf(refused))
  await whenFailed(space, forged.job.id)
  await until(() => completionOf(space, skipped.id))
  await worker.close()
  // The fingerprints of a worker's keys stay for a minute after its end.
  const stays = ['passwords:', 'line', 'sealing'].map((name) => `${space.prefix}:${name}`)
  const isLeft = (key: string) => !stays.some((name) => key.startsWith(name)) || key === jobKey(space, left.job.id)
  const endOf = async (key: string) => {
    const [lifeMs, now] = [await space.redis.pttl(key), client.now()]
    // Below 0: it has no end (-1), or is gone (-2).
    return lifeMs === -1 ? Number.POSITIVE_INFINITY : now + lifeMs
  }
  const ends = new Map<string, number>()
  for (const key of await space.redis.keys(`${space.prefix}*`)) if (isLeft(key)) ends.set(key, await endOf(key))
  assert.ok(ends.size > 0, 'the result was looked at')
  for (const [key, end] of ends) assert.ok(end <= skipped.deadline + CLOCKS_MS, `${key} ends at ${end}`)
})

/** A job that another client added, as its ticket tells of it. */
async function jobOfAnother(space: Space): Promise<JobRef> {
  const { job } = await submit(await readyClient(space), 'verify', request, { place: 'ticketed' })
  return { ...job }
}

async function weakly(job: Promise<JobRef>): Promise<WeakRef<JobRef>> {
  return new WeakRef(await job)
}

/** Makes the sealed request of a waiting job up. */
async function forge(space: Space, { id }: JobRef): Promise<void> {
  const data = JSON.parse((await space.redis.hget(jobKey(space, id), 'data')) ?? '')
  await space.redis.hset(jobKey(space, id), 'data', JSON.stringify({ ...data, sealed: 'made up' }))
}
