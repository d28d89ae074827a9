// Commands of one turn of the event loop leave together, at its end, and so do those that come while earlier ones are on their way.
import assert from 'node:assert/strict'
import { connectRedis } from '@spillway/queue/redis/connect'
import { Redis } from 'ioredis'
import { type TestContext, test, vi } from 'vitest'
import { spaceFor } from '../../../test/space.ts'

function connected(t: TestContext): Redis {
  const space = spaceFor(t)
  const redis = connectRedis(space.redisUrl, 'consumer')
  assert.ok(redis instanceof Redis)
  space.closing(async () => redis.disconnect())
  return redis
}

test('commands of one turn leave together at its end, also those of later callbacks of the turn', async (t) => {
  const redis = connected(t)
  await redis.ping()
  const answers = [redis.ping()]
  const oneCommand = redis.stream.writableLength
  assert.ok(oneCommand > 0)
  await new Promise<void>((resolve) => process.nextTick(resolve))
  answers.push(redis.ping())
  assert.equal(redis.stream.writableLength, 2 * oneCommand)
  await new Promise(setImmediate)
  assert.deepEqual([redis.stream.writableCorked, redis.stream.writableLength], [0, 0])
  assert.deepEqual(await Promise.all(answers), ['PONG', 'PONG'])
})

test('commands gather while earlier ones are on their way, and not for long behind one that takes long', async (t) => {
  const redis = connected(t)
  await redis.ping()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  t.onTestFinished(() => void vi.useRealTimers())
  const blocking = redis.blpop('a list that is empty', 0.1)
  while (redis.stream.writableLength > 0) await new Promise(setImmediate)
  const answers = [redis.ping()]
  const oneCommand = redis.stream.writableLength
  await new Promise(setImmediate)
  answers.push(redis.ping())
  assert.deepEqual([redis.stream.writableCorked, redis.stream.writableLength], [1, 2 * oneCommand])
  vi.advanceTimersByTime(2)
  assert.deepEqual([redis.stream.writableCorked, redis.stream.writableLength], [0, 0])
  assert.deepEqual(await Promise.all([blocking, ...answers]), [null, 'PONG', 'PONG'])
})

test('a connection that ends with commands on their way is replaced by one that batches as well', async (t) => {
  const redis = connected(t)
  await redis.ping()
  const answer = redis.ping()
  redis.stream.destroy()
  assert.equal(await answer, 'PONG')
  const next = redis.ping()
  assert.equal(redis.stream.writableCorked, 1)
  assert.equal(await next, 'PONG')
})
