// The report on the queue for operators.
import assert from 'node:assert/strict'
import { createQueueReporter } from '@spillway/queue/jobs/report'
import { test } from 'vitest'
import { readyClient } from '../parts.ts'
import { jobKey, spaceFor } from '../space.ts'

test('of each lane the age of the job that is next is reported', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  const minutes = { held: 2, deferred: 4 }
  for (const lane of ['held', 'deferred'] as const) {
    for (const age of [minutes[lane], 1]) {
      const { job } = await client.submit('hash', { password: 'x' }, lane)
      const data = JSON.parse((await space.redis.hget(jobKey(space, job.id), 'data')) ?? '')
      data.enqueuedAt -= age * 60_000
      await space.redis.hset(jobKey(space, job.id), 'data', JSON.stringify(data))
    }
  }
  const { jobs, oldestMs } = await createQueueReporter(space).read()
  assert.deepEqual([jobs.waiting, jobs.deferred], [2, 2])
  // The client's clock is ahead of Redis's or behind it by a part of a round trip.
  const clockMs = 1_000
  for (const [ms, age] of [
    [oldestMs.waiting, minutes.held],
    [oldestMs.deferred, minutes.deferred],
  ] as const)
    assert.ok(ms >= age * 60_000 - clockMs && ms < (age + 1) * 60_000, `${ms} ms`)
})
