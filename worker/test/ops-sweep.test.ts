// Finished jobs do not stay on a queue that has gone quiet.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNamespace, until } from '@spillway/local/testing'
import { Queue, Worker } from 'bullmq'
import { createLogger } from '../src/log.ts'
import { QUEUE_NAME } from '../src/protocol/job.ts'
import { connectRedis } from '../src/redis.ts'
import { sweepFinishedJobs } from '../src/sweep.ts'

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
  const log = createLogger({ service: 'test', level: 'silent' })
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
    const sweep = sweepFinishedJobs({ redis, prefix, log, keepMs: 300, everyMs: 10 })
    const [job] = await queue.getCompleted()
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
