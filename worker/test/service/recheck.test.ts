// The jobs about which a client asks Redis, and what becomes of those that it lost.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { queueKey } from '@spillway/queue/jobs/keys'
import type { JobRef } from '@spillway/queue/queue-client'
import { RedisClock } from '@spillway/queue/redis/clock'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { Cancellation } from '@spillway/queue/wait/cancellation'
import { Producer } from '@spillway/queue/wait/producer'
import { Recheck } from '@spillway/queue/wait/recheck'
import { Waiters } from '@spillway/queue/wait/waiters'
import { test } from 'vitest'
import { readyClient } from '../parts.ts'
import { jobKey, spaceFor, waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }

test('a job that is cancelled in the moment in which it is added again does not stay', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const job: JobRef = { id: randomUUID(), name: 'verify', deadline: Date.now() + 60_000 }
  const submitted = new Waiters()
  const redeeming = new Waiters()
  submitted.hold(job)
  submitted.added(job.id, { deadline: job.deadline, enqueuedAt: Date.now(), replyTo: 'a', sealed: 'b' })
  const [log, clock] = [createLogger({ service: 'test', level: 'silent' }), new RedisClock()]
  const producer = new Producer({ redis, prefix, log, watch: new RedisWatch(log) })
  const cancellation = new Cancellation({ redis, prefix, clock })
  space.closing(async () => cancellation.close())
  let added = 0
  const recheck = new Recheck({
    ...{ redis, prefix, clock, log, cancellation, addedAgain: () => void added++ },
    answers: { submitted, redeeming, offer() {}, failed() {} },
    producer: {
      async add(...addition) {
        // The cancellation reaches Redis first.
        submitted.withdraw(job.id)
        await cancellation.cancel(job)
        await producer.add(...addition)
      },
    },
  })
  await redis.ping()
  await recheck.run()
  assert.equal(added, 1)
  assert.deepEqual(await waitingJobs(space), [])
})

test('a job that Redis refused is asked about no more', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  await space.redis.set(queueKey(space.prefix, 'wait'), 'no list')
  await assert.rejects(client.submit('verify', request), { code: 'queue_unavailable' })
  await space.redis.del(queueKey(space.prefix, 'wait'))
  const monitor = await monitorRedis(space.redisUrl)
  space.closing(async () => monitor.close())
  const { job, answer } = await client.submit('verify', request)
  const waiting = new AbortController()
  const unanswered = assert.rejects(answer({ waitMs: 60_000, signal: waiting.signal }))
  const asked = () =>
    monitor.commands.filter(({ command }) => command[0] === 'eval' && command[4] === jobKey(space, ''))
  const [{ command }] = [await until(() => asked()[0])]
  assert.deepEqual(command.slice(5), [job.id])
  waiting.abort()
  await unanswered
})
