// Published capacity: its content, its sum at clients, and its expiry.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/keys'
import { RedisClock } from '@spillway/queue/redis/clock'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { test } from 'vitest'
import { CapacityPublisher } from '../../src/consumer/capacity-publisher.ts'
import { CapacityEstimate } from '../../src/hashing/capacity-estimate.ts'
import { clientFor, keyring, startedWorker, submit } from '../parts.ts'
import type { Space } from '../space.ts'

/** Publishes the capacity of a worker of one slot that takes so long for each job. */
function publisher({ redis, prefix, closing }: Space, jobMs: number, published: (answer: { waiting: number }) => void) {
  const first = { costMs: jobMs, latencyMs: jobMs }
  const estimate = new CapacityEstimate({ slots: 1, first, times: () => ({ wallMs: 0, cpuMs: 0 }) })
  const capacity = new CapacityPublisher({
    ...{ redis, prefix, keyring, clock: new RedisClock(), published, estimate },
    log: createLogger({ service: 'test', level: 'silent' }),
    ...{ name: 'test', slots: 1, busySlots: () => 0 },
  })
  closing(() => capacity.close())
}

test.concurrent('a client sees the workers of its queue and what they take for a job, and one that stops no longer', async (t) => {
  const { space, client } = await clientFor(t)
  const workers = [await startedWorker(space, { slots: 2 }), await startedWorker(space, { slots: 3 })]
  await until(() => client.estimates.load().workers === 2)
  const { slots, serviceMs, jobsPerSecond } = client.estimates.load()
  assert.equal(slots, 5)
  assert.ok(serviceMs > 0 && serviceMs < 1_000, `${serviceMs} ms`)
  assert.ok(Math.abs(jobsPerSecond - 5_000 / serviceMs) < 1e-6)
  for (const worker of workers) await worker.close()
  assert.equal(await space.redis.hlen(capacityKey(space.prefix)), 0)
  await until(() => client.estimates.load().workers === 0)
  assert.equal(client.estimates.predictedWaitMs(), Number.POSITIVE_INFINITY)
})

test.concurrent('jobs that operators hold back are none that could be taken: by a pause, by a limit on their rate or on what is active', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  for (const place of ['open', 'ticketed'] as const) await submit(client, 'hash', { password: 'x' }, { place })
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
