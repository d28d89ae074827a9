// A Redis that answers, and refuses to write: because it is full, or has lost its replicas.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@spillway/local/testing'
import { refuseWrites, startOwnRedis } from './own-redis.ts'
import { answerOf, readyClient, startedWorker } from './parts.ts'
import { activeJobs, spaceFor } from './space.ts'

const redisUrl = await startOwnRedis()

const request = { password: 'right', storedHash: '$spillway-wait$500$' }
const match = { kind: 'match' }

test('a job in hand when Redis becomes full is answered while it is full', async (t) => {
  const space = spaceFor(t, redisUrl)
  const client = await readyClient(space)
  await startedWorker(space)
  const pending = await client.submit('verify', request)
  await until(async () => (await activeJobs(space)).length === 1)
  await refuseWrites(space, 'OOM')
  assert.deepEqual(await answerOf(pending, 5_000), match)
})

for (const why of ['OOM', 'NOREPLICAS'] as const) {
  test(`a worker whom Redis answers with ${why} stays alive, and works again when it is over`, async (t) => {
    const space = spaceFor(t, redisUrl)
    const client = await readyClient(space)
    const worker = await startedWorker(space, { env: { STUCK_AFTER_MS: '1000' } })
    const takeAgain = await refuseWrites(space, why)
    const end = performance.now() + 3_000
    const answers = new Set<number>()
    await until(async () => {
      answers.add((await fetch(`${worker.opsUrl}/healthz`)).status)
      return performance.now() > end
    })
    assert.deepEqual([...answers], [200])
    await takeAgain()
    assert.deepEqual(await answerOf(await client.submit('verify', request)), match)
  })
}
