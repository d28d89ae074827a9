// The channel on which answers come: a connection that nobody closed, but over which nothing comes any more, is replaced.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { connectRedis } from '@spillway/queue/redis/connect'
import { Replies } from '@spillway/queue/wait/replies'
import { replyChannel } from '@spillway/queue/wire/reply'
import { test } from 'vitest'
import { redisProxy, spaceFor } from '../space.ts'

test('a subscriber that has fallen silent is replaced, and hears what is announced after that', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix, closing } = space
  const proxy = await redisProxy(space)
  const subscriber = connectRedis(proxy.url, 'consumer').on('error', () => undefined)
  closing(async () => subscriber.disconnect())
  const heard: unknown[] = []
  let confirmations = 0
  const replies = new Replies({
    subscriber,
    prefix,
    replyTo: 'here',
    log: createLogger({ service: 'test', level: 'silent' }),
    received: (reply) => heard.push(reply),
    subscribed() {
      confirmations += 1
    },
  })
  await until(() => replies.isSubscribed())
  // A check that comes while the new connection subscribes.
  subscriber.on('ready', () => replies.check())
  proxy.freezeOpen()
  await until(() => {
    replies.check()
    return confirmations > 1 && replies.isSubscribed()
  })
  await redis.publish(replyChannel(prefix, 'here'), 'a-job sealed')
  await until(() => heard.length > 0)
  assert.deepEqual(heard, [{ jobId: 'a-job', sealed: 'sealed' }])
  assert.equal(confirmations, 2, 'a connection subscribes once')
})
