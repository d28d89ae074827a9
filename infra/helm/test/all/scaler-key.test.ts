// The keys that the scaler watches are those that the queue makes. A key that nobody makes reads as
// empty for ever.
import assert from 'node:assert/strict'
import { createLogger } from '@spillway/common/log'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { newSealKey } from '@spillway/infra/start/secrets'
import { PasswordClient, parseKeyring } from '@spillway/queue/client'
import { newId } from '@spillway/queue/wire/id'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { rendered, skip, specOf } from '../chart.ts'

/** How long jobs may wait, and their clients are present, in milliseconds. */
const JOB_LIFE_MS = 60_000

test.skipIf(skip)('the keys that the scaler watches are those that jobs wait and run in', async (t) => {
  const { redisUrl, queuePrefix, close } = await createNamespace()
  t.onTestFinished(close)
  const log = createLogger({ service: 'test', level: 'silent' })
  const keyring = parseKeyring(newSealKey())
  const client = new PasswordClient({ redisUrl, prefix: queuePrefix, keyring, log })
  t.onTestFinished(() => client.close())
  const worker = new Worker('passwords', null, { connection: { url: redisUrl }, prefix: queuePrefix })
  t.onTestFinished(() => worker.close())
  const redis = new Redis(redisUrl)
  t.onTestFinished(() => redis.disconnect())

  await until(() => client.isReady(), { what: 'the client' })
  for (const place of ['open', 'open', 'open', 'ticketed', 'ticketed', 'ticketed'] as const) {
    const job = { id: newId(), name: 'verify', deadline: client.now() + JOB_LIFE_MS } as const
    const request = { password: 'any', storedHash: 'any' }
    // An open job that finds ticketed ones would promote two of these.
    const submitted = await client.submit({ job, request, admitted: client.admitTo(place), presentMs: JOB_LIFE_MS })
    submitted.end()
  }
  assert.ok(await worker.getNextJob('token'))
  const { open = '', ticketed = '', active = '' } = await watchedKeys(queuePrefix)
  assert.deepEqual([await redis.llen(open), await redis.zcard(ticketed), await redis.llen(active)], [2, 3, 1])
})

/** The keys that the chart's scaler watches, by the name of the trigger. */
async function watchedKeys(queuePrefix: string): Promise<Record<string, string>> {
  const prefix = queuePrefix.replace(/[{}]/g, '\\$&')
  const [scaledObject] = await rendered('ScaledObject', { set: [`redis.queuePrefix=${prefix}`] })
  const { triggers } = specOf<{ triggers: { name: string; metadata: { listName: string } }[] }>(scaledObject)
  return Object.fromEntries(triggers.map(({ name, metadata }) => [name, metadata.listName]))
}
