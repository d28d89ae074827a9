// Finished jobs do not stay on a queue that has gone quiet, nor dead workers among the living.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { redisTime } from '@spillway/infra/harness/clocks'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { RedisClock } from '@spillway/queue/redis/clock'
import { connectRedis, type RedisConnection } from '@spillway/queue/redis/connect'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { QUEUE_NAME } from '@spillway/queue/wire/job'
import { Queue, Worker } from 'bullmq'
import { test } from 'vitest'
import { JobWatch } from '../../src/consumer/job-watch.ts'
import { WorkerMetrics } from '../../src/ops/metrics.ts'
import { entry } from '../capacity-entry.ts'
import { workerFor } from '../parts.ts'

const log = createLogger({ service: 'test', level: 'silent' })
const watch = new RedisWatch(log)
const watching = (redis: RedisConnection, prefix: string, keep: { keepMs?: number } = {}) =>
  new JobWatch({
    ...{ redis, prefix, watch, log, metrics: new WorkerMetrics(), consumerId: 'consumer', ...keep },
    clock: new RedisClock(),
    isInHand: () => false,
    sweepEveryMs: 10,
  })

test('completed and failed jobs go when they are old enough, although no other job finishes', async () => {
  const { redisUrl, queuePrefix: prefix, close } = await createNamespace()
  const redis = connectRedis(redisUrl, 'consumer')
  const queue = new Queue(QUEUE_NAME, { connection: redis, prefix })
  const worker = new Worker(
    QUEUE_NAME,
    async ({ name }) => {
      if (name === 'fails') throw new Error('on purpose')
    },
    { connection: redis, prefix },
  )
  const kept = () => queue.getJobCounts('completed', 'failed')
  try {
    await queue.addBulk([
      { name: 'works', data: {} },
      { name: 'fails', data: {} },
    ])
    await until(async () => {
      const { completed, failed } = await kept()
      return completed === 1 && failed === 1
    })
    const [job] = await queue.getCompleted()
    const sweep = watching(redis, prefix, { keepMs: 300 })
    await until(async () => {
      const { completed, failed } = await kept()
      return completed === 0 && failed === 0
    })
    assert.ok(Date.now() - Number(job?.finishedOn) >= 300, 'the job went too early')
    await sweep.close()
  } finally {
    await worker.close()
    await queue.close()
    redis.disconnect()
    await close()
  }
})

test('the capacity of dead workers is swept out, with values that are no capacity, and the capacity of live workers stays', async (t) => {
  const { space, redis, prefix } = await workerFor(t)
  const key = capacityKey(prefix)
  const living = Object.keys(await redis.hgetall(key))
  assert.equal(living.length, 1)
  const now = await redisTime(redis)
  const at = (ageS: number) => JSON.stringify({ ...entry, at: now - ageS * 1_000 })
  const leftovers = ['', 'x', '7', 'null', '[]', '{}', JSON.stringify({ at: now })]
  await redis.hset(key, { dead: at(61), ahead: at(-65), resting: at(50), ...leftovers })
  const connection = connectRedis(space.redisUrl, 'consumer')
  space.closing(async () => connection.disconnect())
  const sweep = watching(connection, prefix)
  space.closing(() => sweep.close())
  await until(async () => (await redis.hlen(key)) <= 2)
  assert.deepEqual(Object.keys(await redis.hgetall(key)).sort(), [...living, 'resting'].sort())
})
