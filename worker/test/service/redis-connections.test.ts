// Connections to Redis: where they lead, and the log of those that fail and come back.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { askOnNewConnection, connectRedis, type RedisConnection } from '@spillway/queue/redis/connect'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { type TestContext, test } from 'vitest'
import { redisProxy, spaceFor } from '../space.ts'

const FAILED = 'redis connection failed'
const BACK = 'redis connection is back'

interface Line {
  msg: string
  times: number
}

function linesOf(): { lines: Line[]; log: ConstructorParameters<typeof RedisWatch>[0] } {
  const lines: Line[] = []
  const keep = (facts: object, msg: string) => lines.push({ times: 0, ...facts, msg })
  return { lines, log: { error: keep, warn: keep, info: keep, debug: keep } }
}

/** Three connections by way of a proxy: two, and the duplicate on which BullMQ waits for jobs */
async function watched(t: TestContext, watch: RedisWatch) {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  let failures = 0
  const connections = ['one', 'other'].map((name) => {
    const redis = connectRedis(proxy.url, 'consumer')
    watch.watch(redis, name)
    redis.on('reconnecting', () => {
      failures += 1
    })
    space.closing(async () => redis.disconnect())
    return redis
  })
  const [connection] = connections
  assert.ok(connection)
  const worker = new Worker('passwords', async () => undefined, { connection, prefix: space.prefix })
  worker.on('error', (error) => watch.queueFailed(error))
  space.closing(() => worker.close(true))
  await worker.waitUntilReady()
  await until(() => connections.every(({ status }) => status === 'ready'))
  return { connections, proxy, failures: () => failures }
}

test.concurrent('any number of failures of any number of connections is one line, and their return is one', async (t) => {
  const { lines, log } = linesOf()
  const { proxy, failures } = await watched(t, new RedisWatch(log))
  for (let round = 1; round <= 2; round += 1) {
    const before = failures()
    proxy.refuse()
    await until(() => failures() - before >= 8)
    proxy.restore()
    await until(() => lines.some(({ msg }) => msg === BACK))
    const messages = lines.splice(0).map(({ msg }) => msg)
    assert.deepEqual(messages, [FAILED, BACK])
  }
})

test('a connection uses the database that its URL names', async (t) => {
  const { redis, redisUrl, prefix, closing } = spaceFor(t)
  const url = new URL(redisUrl)
  url.pathname = '/7'
  const connection = connectRedis(url.href, 'consumer')
  closing(async () => connection.disconnect())
  await connection.set(`${prefix}:there`, 'x', 'PX', 60_000)
  assert.equal(await redis.exists(`${prefix}:there`), 0)
  await redis.select(7)
  assert.equal(await redis.del(`${prefix}:there`), 1)
  await redis.select(0)
})

test('commands of one turn of the event loop are written together, and each gets its answer', async (t) => {
  const { redisUrl, prefix, closing } = spaceFor(t)
  const redis = connectRedis(redisUrl, 'consumer')
  closing(async () => redis.disconnect())
  assert.ok(redis instanceof Redis)
  await redis.ping()
  const answers = Promise.all([redis.set(`${prefix}:together`, '1', 'PX', 60_000), redis.get(`${prefix}:together`)])
  assert.equal(redis.stream.writableCorked, 1)
  assert.deepEqual(await answers, ['OK', '1'])
  assert.equal(redis.stream.writableCorked, 0)
})

test('Redis is there for others when it answers for our keys: a PING, which any node of a cluster answers, is not enough', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const name = prefix.replace(/[{}]/g, '')
  await redis.call('ACL', 'SETUSER', name, 'on', '>secret', '~elsewhere', '+@all')
  space.closing(() => redis.call('ACL', 'DELUSER', name))
  const url = new URL(space.redisUrl)
  url.username = name
  url.password = 'secret'
  const ask = (redis: RedisConnection) => redis.exists(capacityKey(prefix))
  assert.equal(await askOnNewConnection(url.href, ask), undefined)
  assert.equal(await askOnNewConnection(space.redisUrl, ask), 0)
})
