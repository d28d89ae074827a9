// The channel on which answers come: a connection that nobody closed, but over which nothing comes any more, is replaced.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hearReplies } from '@spillway/client/passwords/replies'
import { replyChannel } from '@spillway/client/protocol/reply'
import { connectRedis } from '@spillway/client/redis/connect'
import { until } from '@spillway/local/testing'
import { createLogger } from '../src/process/log.ts'
import { openFreezingProxy } from './freezing-proxy.ts'
import { spaceFor } from './space.ts'

test('a subscriber that has fallen silent is replaced, and hears what is announced after that', async (t) => {
  const { redis, redisUrl, prefix, closing } = spaceFor(t)
  const { hostname, port } = new URL(redisUrl)
  const proxy = await openFreezingProxy({ host: hostname, port: Number(port) })
  closing(() => proxy.close())
  const url = new URL(redisUrl)
  url.port = String(proxy.port)
  const subscriber = connectRedis(url.href, 'consumer').on('error', () => undefined)
  closing(async () => subscriber.disconnect())
  const heard: unknown[] = []
  let confirmations = 0
  const replies = hearReplies({
    subscriber,
    prefix,
    replyTo: 'here',
    log: createLogger({ service: 'test', level: 'silent' }),
    received: (reply) => heard.push(reply),
    subscribed() {
      confirmations += 1
    },
  })
  await until(() => replies.isHearing())
  proxy.freeze()
  await until(() => {
    replies.check()
    return confirmations === 2
  })
  assert.equal(replies.isHearing(), true)
  await redis.publish(replyChannel(prefix, 'here'), 'a-job sealed')
  await until(() => heard.length > 0)
  assert.deepEqual(heard, [{ jobId: 'a-job', sealed: 'sealed' }])
})
