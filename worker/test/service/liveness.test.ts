// How a worker's silence is looked into: once at a time, and not believed when it is over.
import assert from 'node:assert/strict'
import { withResolvers } from '@spillway/common/within'
import { until } from '@spillway/infra/processes/until'
import { askOnNewConnection, type RedisConnection } from '@spillway/queue/redis/connect'
import { capacityKey } from '@spillway/queue/wire/capacity'
import { test } from 'vitest'
import { Liveness } from '../../src/consumer/liveness.ts'
import { spaceFor } from '../space.ts'

test('one look into silence at a time, and none says what is not so any more', async (t) => {
  const looks: ((answers: boolean) => void)[] = []
  const liveness = new Liveness({
    limit: () => 1,
    stuckAfterMs: 300,
    isConnected: () => true,
    redisAnswersNewConnection() {
      const { promise, resolve } = withResolvers<boolean>()
      looks.push(resolve)
      return promise
    },
  })
  t.onTestFinished(() => liveness.close())
  const startedAt = performance.now()
  await until(() => performance.now() - startedAt > 2_000)
  assert.equal(looks.length, 1)
  liveness.redisAnswered(0)
  looks[0]?.(true)
  // The next look says so: this one told of a silence that was over.
  await until(() => looks.length === 2 || !liveness.isAlive())
  assert.ok(liveness.isAlive())
  looks[1]?.(true)
  await until(() => !liveness.isAlive())
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
