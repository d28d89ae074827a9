// What a client does over connections that break or fall silent: adds its jobs once more and no
// more than that, subscribes to replies again, and asks about the jobs that it waits for.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { PasswordClientError } from '@spillway/queue/errors'
import { queueKey } from '@spillway/queue/jobs/keys'
import type { JobRef } from '@spillway/queue/queue-client'
import { RedisClock } from '@spillway/queue/redis/clock'
import { connectRedis } from '@spillway/queue/redis/connect'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { Waiters } from '@spillway/queue/wait/answers'
import { Producer } from '@spillway/queue/wait/producer'
import { Replies } from '@spillway/queue/wait/replies'
import { replyChannel } from '@spillway/queue/wire/reply'
import { Redis } from 'ioredis'
import { type TestContext, test, vi } from 'vitest'
import { clientFor } from '../parts.ts'
import { jobKey, redisProxy, spaceFor, waitingJobs } from '../space.ts'

const isUnavailable = (error: unknown) => error instanceof PasswordClientError && error.code === 'queue_unavailable'

async function scene(t: TestContext) {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const redis = new Redis(proxy.url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    retryStrategy: () => 20,
  }).on('error', () => undefined)
  space.closing(async () => redis.disconnect())
  const log = createLogger({ service: 'test', level: 'silent' })
  const producer = new Producer({
    ...{ redis, prefix: space.prefix, log },
    ...{ clock: new RedisClock(), watch: new RedisWatch(log) },
  })
  space.closing(() => producer.close())
  await until(() => redis.status === 'ready')
  const data = { deadline: 2, enqueuedAt: 1, replyTo: 'here', sealed: 'sealed' }
  const add = (id: string) => producer.addWithRetry({ id, name: 'verify', deadline: 2 }, data, 'held')
  await add('first')
  return { redis, proxy, add, waiting: () => waitingJobs(space) }
}

/** Resolves when the next command was sent, with its answer. It alone has a time limit. */
function nextCommand(redis: Redis): Promise<{ answer: Promise<unknown> }> {
  return new Promise((resolve) => {
    const { sendCommand } = redis
    redis.options.commandTimeout = 200
    redis.sendCommand = (...command) => {
      redis.sendCommand = sendCommand
      const answer = sendCommand.apply(redis, command)
      delete redis.options.commandTimeout
      resolve({ answer: Promise.resolve(answer) })
      return answer
    }
  })
}

test('a job whose connection does not come back at once is given up', async (t) => {
  const { redis, proxy, add } = await scene(t)
  proxy.freeze()
  const command = nextCommand(redis)
  const refused = assert.rejects(add('second'), isUnavailable)
  await command
  proxy.refuse()
  await refused
})

test('a subscriber that has fallen silent is replaced, and hears what is announced after that', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix, closing } = space
  const proxy = await redisProxy(space)
  const subscriber = connectRedis(proxy.url, 'consumer').on('error', () => undefined)
  closing(async () => subscriber.disconnect())
  const heard: unknown[] = []
  const { mock: subscriptions } = vi.spyOn(subscriber, 'subscribe')
  const replies = new Replies({
    ...{ redis, subscriber, prefix, replyTo: 'here', clock: new RedisClock() },
    log: createLogger({ service: 'test', level: 'silent' }),
    answers: { submitted: new Waiters(), redeeming: new Waiters(), offer: (reply) => heard.push(reply), failed() {} },
    producer: { add: async () => undefined, cancel: async () => false },
    addedAgain: () => undefined,
  })
  closing(async () => replies.close())
  await until(() => replies.isSubscribed())
  // A check that comes while the new connection subscribes.
  subscriber.on('ready', () => replies.check())
  proxy.freezeOpen()
  await until(() => {
    replies.check()
    return subscriptions.calls.length > 1 && replies.isSubscribed()
  })
  await redis.publish(replyChannel(prefix, 'here'), 'a-job sealed')
  await until(() => heard.length > 0)
  assert.deepEqual(heard, [{ jobId: 'a-job', sealed: 'sealed' }])
  assert.equal(subscriptions.calls.length, 2, 'a connection subscribes once')
})

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
  const subscriber = new Redis({ lazyConnect: true })
  const producer = new Producer({ redis, prefix, clock, log, watch: new RedisWatch(log) })
  space.closing(() => producer.close())
  await redis.ping()
  let added = 0
  const replies = new Replies({
    ...{ redis, subscriber, prefix, replyTo: 'a', clock, log, addedAgain: () => void added++ },
    answers: { submitted, redeeming, offer() {}, failed() {} },
    producer: {
      cancel: (job) => producer.cancel(job),
      async add(...addition) {
        // The cancellation reaches Redis first.
        submitted.withdraw(job.id)
        await producer.cancel(job)
        await producer.add(...addition)
      },
    },
  })
  space.closing(async () => replies.close())
  await replies.ask()
  assert.equal(added, 1)
  assert.deepEqual(await waitingJobs(space), [])
})

test('a job that Redis refused is asked about no more', async (t) => {
  const { space, client } = await clientFor(t)
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
