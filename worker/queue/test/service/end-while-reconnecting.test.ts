// Connections that are closed while they wait to connect again, or while a Cluster adds a node.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { startProxy } from '@spillway/infra/rig/tcp-proxy'
import { Cluster } from 'ioredis'
import { type TestContext, test } from 'vitest'
import { connectRedis } from '../../src/redis/connect.ts'

/** Nobody listens there. */
const NOWHERE = '127.0.0.1:9'

/** A connection that nothing keeps after the test. */
function connected(t: TestContext, url: string) {
  const redis = connectRedis(url, 'consumer').on('error', () => undefined)
  t.onTestFinished(() => redis.disconnect())
  return redis
}

/** Resolves with the next event of this name. Not once(): it rejects where the attempt to connect fails, which it should here. */
function next(redis: ReturnType<typeof connected>, event: 'connecting' | 'reconnecting' | 'end'): Promise<void> {
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

for (const kind of ['redis', 'redis+cluster']) {
  test(`${kind}: it ends, and so do the commands that wait for it`, async (t) => {
    const redis = connected(t, `${kind}://${NOWHERE}`)
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
  proxy.refuse()
  // With the second attempt ioredis has put them aside.
  await next(redis, 'connecting')
  await next(redis, 'reconnecting')
  const ended = next(redis, 'end')
  redis.disconnect()
  await Promise.all([ended, inFlight])
})

test('it connects again when it is told to', async (t) => {
  const { proxy, key } = await behindProxy(t)
  proxy.refuse()
  const redis = connected(t, proxy.url)
  await until(() => redis.status === 'reconnecting')
  redis.disconnect()
  proxy.restore()
  await redis.connect()
  assert.equal(await redis.get(key), null)
})

// BullMQ duplicates connections.
for (const kind of ['Cluster', 'duplicate of a Cluster'])
  test(`a ${kind} to which a node is added while it disconnects connects again`, async (t) => {
    const first = connected(t, `redis+cluster://${NOWHERE}`)
    assert.ok(first instanceof Cluster)
    const redis = kind === 'Cluster' ? first : first.duplicate().on('error', () => undefined)
    t.onTestFinished(() => redis.disconnect())
    await new Promise<void>((resolve) => redis.once('+node', () => resolve()))
    redis.disconnect(true)
    // As ioredis does when the answer to a command in flight names another node.
    const pool: { findOrCreate(node: object): unknown } = Reflect.get(redis, 'connectionPool')
    pool.findOrCreate({ host: '127.0.0.1', port: 10 })
    await next(redis, 'reconnecting')
  })
