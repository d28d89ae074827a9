// Jobs that Redis gave to a worker in a reply that was lost with its connection.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMetric } from '@spillway/local/services/prometheus'
import { until } from '@spillway/local/testing'
import { answerOf, jobsCounted, readyClient, startedWorker } from './parts.ts'
import { activeJobs, redisProxy, spaceFor, waitingJobs } from './space.ts'

const lasting = (ms: number) => ({ password: 'right', storedHash: `$spillway-wait$${ms}$` })

const requeued = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_jobs_handed_back_total')
const stalled = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_jobs_stalled_total')

test('a job whose reply was lost with the connection is requeued before its lock has expired', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const worker = await startedWorker({ ...space, redisUrl: proxy.url }, { slots: 1 })
  const client = await readyClient(space)
  const first = await client.submit('verify', lasting(300))
  await until(async () => (await activeJobs(space)).includes(first.job.id))
  const second = await client.submit('verify', lasting(1))

  proxy.freezeReplies()
  await until(async () => (await activeJobs(space)).includes(second.job.id), { what: 'the next job given out' })
  proxy.cut()

  assert.deepEqual(await answerOf(second), { kind: 'match' })
  assert.deepEqual(await answerOf(first), { kind: 'match' })
  assert.deepEqual([await requeued(worker), await stalled(worker)], [1, 0])
})

test('jobs in hand stay when connections break, those of other workers as well, and each is hashed once', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const through = { ...space, redisUrl: proxy.url }
  const workers = [await startedWorker(through, { slots: 1 }), await startedWorker(through, { slots: 1 })]
  const client = await readyClient(space)
  const pending = await Promise.all(['a', 'b'].map(() => client.submit('verify', lasting(1_000))))
  await until(async () => (await activeJobs(space)).length === 2)
  proxy.cut()

  for (const job of pending) assert.deepEqual(await answerOf(job), { kind: 'match' })
  for (const worker of workers) {
    assert.deepEqual([await requeued(worker), await stalled(worker)], [0, 0])
    await until(async () => (await jobsCounted(worker)).join() === 'verify hashed 1')
  }
  assert.deepEqual(await waitingJobs(space), [])
})
