// After a failover the former master answers READONLY: its connection is dropped, the new found.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { connectRedis } from '@spillway/queue/redis/connect'
import { afterAll, test } from 'vitest'
import { spaceFor } from '../space.ts'

const { url: redisUrl, close } = await startOwnRedis()
afterAll(close)

for (const role of ['producer', 'consumer'] as const) {
  test(`the connection of a ${role} to a server that became a replica is replaced at its first write`, async (t) => {
    const space = spaceFor(t, redisUrl)
    const redis = connectRedis(redisUrl, role).on('error', () => undefined)
    space.closing(async () => redis.disconnect())
    await until(() => redis.status === 'ready')
    space.closing(() => space.redis.replicaof('NO', 'ONE'))
    // The master is away: a replica that goes on answering what reads.
    await space.redis.replicaof('127.0.0.1', '1')
    let closes = 0
    redis.on('close', () => {
      closes += 1
    })
    assert.equal(await redis.get(`${space.prefix}:key`), null)
    const written = redis.set(`${space.prefix}:key`, 'value').catch((error: unknown) => String(error))
    await until(() => closes > 0, { what: 'that the connection is dropped' })
    await space.redis.replicaof('NO', 'ONE')
    await until(() => redis.status === 'ready')
    assert.match(String(await written), /^OK$|READONLY/)
  })
}
