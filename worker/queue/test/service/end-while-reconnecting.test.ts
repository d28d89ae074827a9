// Connections that are closed while they wait to connect again.
import assert from 'node:assert/strict'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { startProxy } from '@spillway/infra/harness/tcp-proxy'
import { until } from '@spillway/infra/processes/until'
import { Redis } from 'ioredis'
import { type TestContext, test } from 'vitest'
import { connectRedis, type RedisConnection } from '../../src/redis/connect.ts'

/** Nobody listens there. */
const NOWHERE = '127.0.0.1:9'

/** A connection that nothing keeps after the test. */
function connected(t: TestContext, url: string) {
  return kept(t, connectRedis(url, 'consumer'))
}

/** As BullMQ makes it, for blocking reads. */
function duplicated(t: TestContext) {
  const redis = connected(t, `redis://${NOWHERE}`)
  assert.ok(redis instanceof Redis)
  return kept(t, redis.duplicate())
}

function kept(t: TestContext, redis: RedisConnection) {
  redis.on('error', () => undefined)
  t.onTestFinished(() => redis.disconnect())
  return redis
}

/** Resolves with the next event of this name. Not once(): it rejects where the attempt to connect fails, which it should here. */
function next(redis: ReturnType<typeof connected>, event: 'reconnecting' | 'end'): Promise<void> {
  return new Promise((resolve) => redis.once(event, () => resolve()))
}

/** A proxy to the Redis of tests, and a key of nothing. */
async function behindProxy(t: TestContext) {
  const { redisUrl, queuePrefix, close } = await createNamespace()
  t.onTestFinished(() => close())
  const proxy = await startProxy(redisUrl)
  t.onTestFinished(() => proxy.close())
  return { proxy, key: `${queuePrefix}:nothing` }
}

for (const [what, open] of [
  ['a connection', (t: TestContext) => connected(t, `redis://${NOWHERE}`)],
  ['a duplicate', duplicated],
  ['a Cluster', (t: TestContext) => connected(t, `redis+cluster://${NOWHERE}`)],
] as const) {
  test(`${what} ends, and so do the commands that wait for it`, async (t) => {
    const redis = open(t)
    const waiting = assert.rejects(redis.get('a'))
    await until(() => redis.status === 'reconnecting')
    const ended = next(redis, 'end')
    redis.disconnect()
    await Promise.all([ended, waiting])
  })
}

test('commands that were in flight when the connection broke end too', async (t) => {
  const { proxy, key } = await behindProxy(t)
  const redis = connected(t, proxy.url)
  const inFlight = assert.rejects(redis.blpop(key, 0), /Connection is closed/)
  await until(() => redis.status === 'ready')
  await Promise.all([proxy.close(), next(redis, 'reconnecting')])
  const ended = next(redis, 'end')
  redis.disconnect()
  await Promise.all([ended, inFlight])
})
