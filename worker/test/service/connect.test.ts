// Connections to Redis: where they lead.
import assert from 'node:assert/strict'
import { connectRedis } from '@spillway/queue/redis/connect'
import { test } from 'vitest'
import { spaceFor } from '../space.ts'

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
