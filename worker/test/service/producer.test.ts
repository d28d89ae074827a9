// Adding jobs over a connection that breaks: once more over the next one, and no more than that.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { PasswordClientError } from '@spillway/queue/errors'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { Producer } from '@spillway/queue/wait/producer'
import { Redis } from 'ioredis'
import { type TestContext, test } from 'vitest'
import { redisProxy, spaceFor, waitingJobs } from '../space.ts'

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
  const producer = new Producer({ redis, prefix: space.prefix, log, watch: new RedisWatch(log) })
  space.closing(() => producer.close())
  await until(() => redis.status === 'ready')
  const data = { deadline: 2, enqueuedAt: 1, replyTo: 'here', sealed: 'sealed' }
  const add = (id: string) => producer.addWithRetry({ id, name: 'verify', deadline: 2 }, data, 'held')
  await add('first')
  return { redis, proxy, add, waiting: () => waitingJobs(space) }
}

/** Resolves when the next command has been sent, with what ioredis says of its answer. It alone has a time limit: a busy machine is slow. */
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

test('a job whose connection breaks before Redis has answered is added over the next one, once', async (t) => {
  const { redis, proxy, add, waiting } = await scene(t)
  proxy.freeze()
  const command = nextCommand(redis)
  const added = add('second')
  const { answer } = await command
  proxy.refuse()
  await assert.rejects(answer, /timed out/)
  proxy.restore()
  await added
  assert.deepEqual(await waiting(), ['second', 'first'])
})

test('a job that Redis does not take over a connection that stands is not tried again', async (t) => {
  const { redis, proxy, add } = await scene(t)
  proxy.freeze()
  void nextCommand(redis)
  await assert.rejects(add('second'), isUnavailable)
})

test('a job whose connection does not come back at once is given up', async (t) => {
  const { redis, proxy, add } = await scene(t)
  proxy.freeze()
  const command = nextCommand(redis)
  const refused = assert.rejects(add('second'), isUnavailable)
  await command
  proxy.refuse()
  await refused
})
