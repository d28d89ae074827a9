// A Redis that answers, and refuses to write: because it is full, or has lost its replicas.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@spillway/local/testing'
import { refuseWrites, startOwnRedis } from './own-redis.ts'
import { answerOf, readyClient, startedWorker } from './parts.ts'
import { activeJobs, spaceFor } from './space.ts'

const redisUrl = await startOwnRedis()

test('a job in hand when Redis becomes full is answered while it is full', async (t) => {
  const space = spaceFor(t, redisUrl)
  const client = await readyClient(space)
  await startedWorker(space)
  const pending = await client.submit('verify', { password: 'right', storedHash: '$spillway-wait$500$' })
  await until(async () => (await activeJobs(space)).length === 1)
  await refuseWrites(space, 'OOM')
  assert.deepEqual(await answerOf(pending, 5_000), { kind: 'match' })
})
