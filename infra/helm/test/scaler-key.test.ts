// The lists that the scaler watches are those that the queue makes. A list that nobody makes reads as empty for ever.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createNamespace, startProcess, until } from '@spillway/local/testing'
import { createPasswordClient, parseKeyring } from '@spillway/worker/client'
import { createLogger } from '@spillway/worker/log'
import { Redis } from 'ioredis'
import { rendered, skip } from './programs.ts'

test('the lists that the scaler watches are those that jobs wait and run in', { skip }, async (t) => {
  const { redisUrl, queuePrefix, close } = await createNamespace()
  t.after(close)
  const sealKeys = `test:${randomBytes(32).toString('base64')}`
  const log = createLogger({ service: 'test', level: 'silent' })
  const keyring = parseKeyring(sealKeys)
  const client = createPasswordClient({ redisUrl, prefix: queuePrefix, keyring, jobLifeMs: 60_000, log })
  t.after(() => client.close())
  const redis = new Redis(redisUrl)
  t.after(() => redis.disconnect())
  const worker = startProcess({
    entry: 'worker/dist/main.cjs',
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
  t.after(() => worker.close())
  await worker.waitForLog(({ msg }) => msg === 'worker ready')

  await until(() => client.isReady(), { what: 'the client' })
  for (let jobs = 0; jobs < 3; jobs += 1)
    await client.submit('verify', { password: 'any', storedHash: '$spillway-wait$5000$' })
  // One runs, two wait: each list is known by its length.
  const lists = await until(async () => {
    const byLength = await listsByLength(redis, queuePrefix)
    return byLength.size === 2 && byLength.has(1) ? byLength : undefined
  })

  const [scaledObject] = await rendered('ScaledObject', {
    set: [`redis.queuePrefix=${queuePrefix.replace(/[{}]/g, '\\$&')}`],
  })
  const { triggers } = JSON.parse(JSON.stringify(scaledObject?.spec))
  const watched = new Map(
    triggers.map(({ name, metadata }: { name: string; metadata: { listName: string } }) => [name, metadata.listName]),
  )
  assert.deepEqual(
    watched,
    new Map([
      ['waiting', lists.get(2)],
      ['active', lists.get(1)],
    ]),
  )
})

async function listsByLength(redis: Redis, prefix: string): Promise<Map<number, string>> {
  const lists = new Map<number, string>()
  for (const key of await redis.keys(`${prefix}*`)) {
    if ((await redis.type(key)) === 'list') lists.set(await redis.llen(key), key)
  }
  return lists
}
