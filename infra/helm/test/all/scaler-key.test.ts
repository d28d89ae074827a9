// The keys that the scaler watches are those that the queue makes. A key that nobody makes reads as
// empty for ever.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { createNamespace } from '@spillway/infra/rig/namespace'
import { startMember, workerProgram } from '@spillway/infra/start/member'
import { createPasswordClient, parseKeyring } from '@spillway/queue/queue-client'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { rendered, skip, specOf } from '../programs.ts'

test.skipIf(skip)('the keys that the scaler watches are those that jobs wait and run in', async (t) => {
  const { redisUrl, queuePrefix, close } = await createNamespace()
  t.onTestFinished(close)
  const sealKeys = `test:${randomBytes(32).toString('base64')}`
  const log = createLogger({ service: 'test', level: 'silent' })
  const keyring = parseKeyring(sealKeys)
  const client = createPasswordClient({ redisUrl, prefix: queuePrefix, keyring, jobLifeMs: 60_000, log })
  t.onTestFinished(() => client.close())
  const redis = new Redis(redisUrl)
  t.onTestFinished(() => redis.disconnect())
  const queue = new Queue('passwords', { connection: { url: redisUrl }, prefix: queuePrefix })
  t.onTestFinished(() => queue.close())
  const worker = await startMember(workerProgram, {
    env: {
      REDIS_URL: redisUrl,
      QUEUE_PREFIX: queuePrefix,
      SPILLWAY_SEAL_KEYS: sealKeys,
      SPILLWAY_TEST_HASHES: 'true',
      WORKER_CONCURRENCY: '1',
      OPS_PORT: '0',
      ARGON2_MEMORY_KIB: '1024',
    },
  })
  t.onTestFinished(() => worker.close())

  await until(() => client.isReady(), { what: 'the client' })
  for (const lane of ['held', 'held', 'known'] as const)
    await client.submit('verify', { password: 'any', storedHash: '$spillway-wait$5000$' }, { lane })
  // One runs, two wait, the known device's among them: each key is known by how many jobs it holds.
  const keys = await until(async () => {
    const bySize = await keysBySize(redis, queuePrefix)
    return bySize.size === 2 && bySize.has(1) ? bySize : undefined
  })
  const watched = await watchedKeys(queuePrefix)
  assert.equal(watched.get('waiting'), keys.get(2))
  assert.equal(watched.get('active'), keys.get(1))

  // Jobs that nobody waits for have a priority, and stand elsewhere.
  await queue.add('verify', {}, { priority: 1 })
  assert.equal(await redis.zcard(watched.get('deferred') ?? ''), 1)
})

/** The keys that the chart's scaler watches, by the name of the trigger. */
async function watchedKeys(queuePrefix: string): Promise<Map<string, string>> {
  const prefix = queuePrefix.replace(/[{}]/g, '\\$&')
  const [scaledObject] = await rendered('ScaledObject', { set: [`redis.queuePrefix=${prefix}`] })
  const { triggers } = specOf<{ triggers: { name: string; metadata: { listName: string } }[] }>(scaledObject)
  return new Map(triggers.map(({ name, metadata }) => [name, metadata.listName]))
}

/** The lists under a prefix, by their length. */
async function keysBySize(redis: Redis, prefix: string): Promise<Map<number, string>> {
  const lists = new Map<number, string>()
  for (const key of await redis.keys(`${prefix}*`)) {
    if ((await redis.type(key)) === 'list') lists.set(await redis.llen(key), key)
  }
  return lists
}
