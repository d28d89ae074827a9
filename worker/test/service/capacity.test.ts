// Published capacity: its content, its sum at clients, and its expiry.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { redisTime } from '@spillway/infra/rig/clocks'
import { absentKey, lineKey, queueKey, returnedKey } from '@spillway/queue/jobs/keys'
import { RedisClock } from '@spillway/queue/redis/clock'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { test } from 'vitest'
import { CapacityPublisher } from '../../src/consumer/capacity-publisher.ts'
import { entry } from '../capacity-entry.ts'
import { answerOf, clientAndWorker, clientFor, keyring, readyClient, startedWorker, submitted } from '../parts.ts'
import { type Space, spaceFor } from '../space.ts'

/** Writes the entry of a worker that there is not, fresh for the next second and a half. */
async function pretend({ redis, prefix }: Space, slots: number, serviceMs: number): Promise<void> {
  const at = await redisTime(redis)
  await redis.hset(
    capacityKey(prefix),
    `pretended-${slots}`,
    JSON.stringify({ ...entry, slots, serviceMs, latencyMs: serviceMs, at }),
  )
}

/** Publishes the capacity of a worker of one slot that takes so long for each job. */
function publisher({ redis, prefix, closing }: Space, jobMs: number, published: (answer: { waiting: number }) => void) {
  const estimate = { serviceMs: () => jobMs, lineMs: () => jobMs, latencyMs: () => jobMs, foretoldMs: () => jobMs }
  const capacity = new CapacityPublisher({
    ...{ redis, prefix, keyring, clock: new RedisClock(), published, estimate },
    log: createLogger({ service: 'test', level: 'silent' }),
    ...{ name: 'test', slots: 1, busySlots: () => 0, asking: () => 0, fallback: false },
    hasher: { unitCosts: { argon2Ms: 0.001, bcryptMs: 0.05 } },
  })
  closing(() => capacity.close())
}

test.concurrent('a client sees the workers of its queue, their slots and what they take for a job', async (t) => {
  const { space, client } = await clientFor(t)
  await startedWorker(space, { slots: 2 })
  await until(() => client.load().workers === 1)
  assert.equal(client.load().slots, 2)
  await startedWorker(space, { slots: 3 })
  await until(() => client.load().workers === 2)
  const { slots, serviceMs, jobsPerSecond } = client.load()
  assert.equal(slots, 5)
  assert.ok(serviceMs > 0 && serviceMs < 1_000, `${serviceMs} ms`)
  assert.ok(Math.abs(jobsPerSecond - 5_000 / serviceMs) < 1e-6)
})

test.concurrent('a key of another type in the place of the capacity is deleted', async (t) => {
  const { space, client } = await clientAndWorker(t)
  await until(() => client.load().workers === 1)
  await space.redis.set(capacityKey(space.prefix), 'anything')
  await until(async () => (await space.redis.type(capacityKey(space.prefix))) === 'hash')
  await until(() => client.load().known && client.load().workers === 1)
})

test.concurrent('keys of another type say nothing, and hide from no gateway that there is no worker', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const lists = (['wait', 'active', 'prioritized'] as const).map((part) => queueKey(prefix, part))
  for (const key of [capacityKey(prefix), absentKey(prefix), returnedKey(prefix), lineKey(prefix), ...lists])
    await redis.set(key, 'x')
  const client = await readyClient(space)
  await until(() => client.load().known, { what: 'a reading' })
  assert.deepEqual({ workers: client.load().workers, absent: client.load().absent }, { workers: 0, absent: 0 })
  await startedWorker(space)
  assert.deepEqual(await answerOf(await submitted(client)), { kind: 'match' })
})

test.concurrent('the published service time follows what jobs really take', async (t) => {
  const { space, client } = await clientFor(t)
  await startedWorker(space, { slots: 8 })
  await until(() => client.load().workers === 1)
  const jobs = Array.from({ length: 24 }, () =>
    client.submit('verify', { password: 'x', storedHash: '$spillway-wait$200$' }),
  )
  await Promise.all((await Promise.all(jobs)).map((pending) => answerOf(pending)))
  await until(() => client.load().serviceMs > 150)
})

test.concurrent('jobs that are dropped say nothing of what a job takes', async (t) => {
  const { space, client } = await clientFor(t)
  await startedWorker(space, { slots: 1 })
  const capacity = async (): Promise<typeof entry> => {
    const [published = '{}'] = Object.values(await space.redis.hgetall(capacityKey(space.prefix)))
    return JSON.parse(published)
  }
  const slow = await client.submit('verify', { password: 'x', storedHash: '$spillway-wait$2000$' })
  await answerOf(slow)
  const { serviceMs } = await until(async () => {
    const published = await capacity()
    return published.finished.answered === 1 ? published : undefined
  })
  const late = await readyClient(space, { jobLifeMs: -1_000 })
  for (let n = 0; n < 10; n += 1) await answerOf(await late.submit('hash', { password: 'x' }), 0)
  const { serviceMs: since } = await until(async () => {
    const published = await capacity()
    return published.finished.expired === 10 ? published : undefined
  })
  assert.equal(since, serviceMs)
})

test.concurrent('the predicted wait: what is ahead through what all workers do, one service time at least', async (t) => {
  const { space, client } = await clientFor(t)
  assert.equal(client.predictedWaitMs('held'), Number.POSITIVE_INFINITY)
  const sees = (workers: number, waiting: number) =>
    until(async () => {
      await pretend(space, 2, 100)
      if (workers === 2) await pretend(space, 4, 100)
      return client.load().workers === workers && client.load().waiting === waiting
    })
  await sees(1, 0)
  assert.equal(client.predictedWaitMs('held'), 100)

  for (let i = 0; i < 29; i += 1) await client.submit('hash', { password: 'x' })
  await sees(1, 29)
  // 29 ahead and the job itself, by 20 jobs a second.
  assert.equal(client.predictedWaitMs('held'), 1_500)
  await sees(2, 29)
  assert.equal(client.predictedWaitMs('held'), 500)
})

test.concurrent('a job counts from the moment it is added, before the queue has been read again', async (t) => {
  const { client } = await clientFor(t)
  const before = client.load().waiting
  await Promise.all(Array.from({ length: 5 }, () => client.submit('hash', { password: 'x' })))
  assert.ok(client.load().waiting >= before + 5)
  await until(() => client.load().waiting === 5)
})

test.concurrent('a worker that stops is not counted on any more, at once', async (t) => {
  const { space, client, worker } = await clientAndWorker(t)
  await until(() => client.load().workers === 1)
  await worker.close()
  assert.equal(await space.redis.hlen(capacityKey(space.prefix)), 0)
  await until(() => client.load().workers === 0)
  assert.equal(client.predictedWaitMs('held'), Number.POSITIVE_INFINITY)
})

test.concurrent('jobs that operators hold back are none that could be taken: by a pause, by a limit on their rate or on what is active', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  for (const lane of ['held', 'deferred'] as const) await client.submit('hash', { password: 'x' }, { lane })
  let waiting: number | undefined
  publisher(space, 1, (answer) => {
    waiting = answer.waiting
  })
  await redis.lpush(queueKey(prefix, 'active'), 'a-job')
  for (const setting of ['paused', 'max', 'concurrency']) {
    await until(() => waiting === 2)
    await redis.hset(queueKey(prefix, 'meta'), setting, 1)
    await until(() => waiting === 0, { what: `no job to be taken because of ${setting}` })
    await redis.hdel(queueKey(prefix, 'meta'), setting)
  }
  await redis.hset(queueKey(prefix, 'meta'), 'concurrency', 2)
  await until(() => waiting === 2)
})

test.concurrent('a worker that measures no time at all for a job publishes one that counts', async (t) => {
  const { space, client } = await clientFor(t)
  publisher(space, 0, () => undefined)
  await until(() => client.load().workers === 1)
})
