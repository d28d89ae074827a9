// An application's own ioredis is left as it is, wherever our connections are loaded: its error texts, its classes, its commands.
import assert from 'node:assert/strict'
import { Cluster, Command, Redis } from 'ioredis'
import { test } from 'vitest'
import { OwnCluster, OwnRedis } from '../../src/inside/ioredis.ts'
import { connectRedis } from '../../src/redis/connect.ts'
import { startFakeRedis } from '../fake-redis.ts'

const REFUSAL = "NOPERM User default has no permissions to run the 'get' command"

test('what Redis refuses to an application is told in its own words, and to us with the rule that helps', async (t) => {
  const refused = (command: string) => /\r\nget\r\n/i.test(command)
  const { url } = await startFakeRedis(t, (command) => (refused(command) ? `-${REFUSAL}\r\n` : '+OK\r\n'))
  const theirs = new Redis(url, { enableReadyCheck: false, protocol: 2 })
  const ours = new OwnRedis(url, { enableReadyCheck: false, protocol: 2 })
  for (const each of [theirs, ours]) t.onTestFinished(() => each.disconnect())
  await assert.rejects(theirs.get('x'), { message: REFUSAL })
  await assert.rejects(ours.get('x'), { message: /may not run "get": give it the rule/ })
  // BullMQ opens further connections in this way.
  const duplicate = ours.duplicate()
  t.onTestFinished(() => duplicate.disconnect())
  assert.ok(duplicate instanceof OwnRedis)
  await assert.rejects(duplicate.get('x'), { message: /may not run "get"/ })
  assert.ok(!(theirs.duplicate({ lazyConnect: true }) instanceof OwnRedis))
})

test('nodes and duplicates of our Clusters are ours', (t) => {
  const cluster = connectRedis('redis+cluster://127.0.0.1:9', 'consumer').on('error', () => undefined)
  assert.ok(cluster instanceof OwnCluster)
  const duplicate = cluster.duplicate().on('error', () => undefined)
  t.onTestFinished(() => {
    cluster.disconnect()
    duplicate.disconnect()
  })
  assert.ok(duplicate instanceof OwnCluster)
  const node = new Redis({ lazyConnect: true })
  duplicate.emit('+node', node)
  assert.ok(node instanceof OwnRedis)
})

test('the classes of ioredis have the methods that they came with', () => {
  for (const { prototype } of [Redis, Cluster, Command])
    for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(prototype)))
      if (typeof method.value === 'function')
        assert.doesNotMatch(String(method.value), /sentenceOf|setImmediate\(timeOut/, name)
})
