// Lanes: held jobs go before deferred ones, which get their turn all the same; the place of a job
// as its holder is told, while workers take from them; the age of the job that is next.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/jobs/keys'
import { QueueReporter } from '@spillway/queue/jobs/report'
import type { Lane, PasswordClient } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { answerOf, clientFor, readyClient, startedWorker } from '../parts.ts'
import { jobKey, spaceFor, waitingJobs } from '../space.ts'

const slow = { password: 'right', storedHash: '$spillway-wait$300$' }
const quick = { password: 'right', storedHash: '$spillway-token$' }

async function added(client: PasswordClient, lane: Lane, request = slow) {
  return await client.submit('verify', request, { lane })
}

test('a held job has the held ones before it ahead, a deferred one those of both lanes', async (t) => {
  const client = await readyClient(spaceFor(t))
  const asked: [ahead: number, lane: Lane][] = [
    [1, 'deferred'],
    [2, 'deferred'],
    [3, 'deferred'],
    [0, 'held'],
  ]
  const jobs = []
  for (const [ahead, lane] of asked) jobs.push({ ahead, pending: await added(client, lane) })
  // By another process. The held job has promoted the first two deferred ones, behind itself.
  for (const { ahead, pending } of jobs) {
    const resumed = await client.resume(pending.job)
    const { ahead: told, waitMs } = await resumed.expectation()
    assert.equal(told, ahead)
    assert.equal(waitMs, Number.POSITIVE_INFINITY)
  }
})

test('a job that was added a moment ago is told its place without asking Redis, where jobs that were added during a reading count twice', async (t) => {
  const { client } = await clientFor(t)
  await client.whenKnown(10_000)
  for (let ahead = 0; ahead < 3; ahead++) {
    const pending = await added(client, 'deferred')
    const { ahead: told = Number.NaN } = await pending.expectation()
    assert.ok(told >= ahead && told <= 2 * ahead + 1, `${told} for ${ahead}`)
  }
})

test('its time gets shorter as workers take what is ahead, and by those that join', async (t) => {
  const { space, client } = await clientFor(t)
  const first = await startedWorker(space, { slots: 1 })
  for (let n = 0; n < 6; n++) await answerOf(await added(client, 'held'))
  const ahead = await Promise.all(Array.from({ length: 12 }, () => added(client, 'deferred')))
  const last = await client.resume((await added(client, 'deferred')).job)
  await until(async () => Number(await space.redis.zcard(queueKey(space.prefix, 'prioritized'))) <= 11)

  const alone = await last.expectation()
  await startedWorker(space, { slots: 3 })
  await until(async () => (await last.expectation()).waitMs < alone.waitMs / 2, { what: 'a shorter wait' })
  await until(async () => Number((await last.expectation()).ahead) < Number(alone.ahead), { what: 'fewer ahead' })
  await Promise.all(ahead.map((pending) => answerOf(pending)))
  assert.deepEqual(await answerOf(last), { kind: 'match' })
  assert.equal((await last.expectation()).ahead, 0)
  await first.close()
})

test('where Redis does not say the place, its holder is told no wrong one', async (t) => {
  const { space, client } = await clientFor(t)
  const resumed = await client.resume((await added(client, 'held', quick)).job)
  // Anyone who writes to Redis can do this.
  await space.redis.set(queueKey(space.prefix, 'prioritized'), 'text')
  assert.equal(await answerOf(resumed, 1), undefined)
  const { ahead, waitMs } = await resumed.expectation()
  assert.equal(ahead, undefined)
  assert.ok(waitMs > 0)
})

test('a held job goes before the deferred ones, and promotes the two that have waited longest', async (t) => {
  const { space, client } = await clientFor(t)
  const first = await client.submit('verify', quick, { lane: 'deferred' })
  const second = await client.submit('verify', quick, { lane: 'deferred' })
  const third = await client.submit('verify', quick, { lane: 'deferred' })
  const newcomer = await client.submit('verify', quick, { lane: 'held' })
  await until(async () => (await waitingJobs(space)).length === 3)
  assert.deepEqual(await waitingJobs(space), [second.job.id, first.job.id, newcomer.job.id])
  assert.deepEqual(await space.redis.zrange(queueKey(space.prefix, 'prioritized'), 0, '-1'), [third.job.id])

  await startedWorker(space)
  for (const pending of [newcomer, first, second, third]) assert.deepEqual(await answerOf(pending), { kind: 'match' })
})

test('an id among the deferred jobs that is no job is left out', async (t) => {
  const { space, client } = await clientFor(t)
  const deferred = queueKey(space.prefix, 'prioritized')
  await space.redis.zadd(deferred, 1, 'no-such-job')
  const real = await client.submit('verify', quick, { lane: 'deferred' })
  await client.submit('verify', quick)
  await until(async () => (await waitingJobs(space)).includes(real.job.id))
  assert.equal(await space.redis.zcard(deferred), 0)
})

test('a deferred job whose client goes away is cancelled, and the next one takes its turn', async (t) => {
  const { space, client } = await clientFor(t)
  const [leaving, staying] = [
    await client.submit('verify', quick, { lane: 'deferred' }),
    await client.submit('verify', quick, { lane: 'deferred' }),
  ]
  await answerOf(leaving, 0)
  assert.equal(await client.cancel(leaving.job), true)
  const deferred = queueKey(space.prefix, 'prioritized')
  assert.deepEqual(await space.redis.zrange(deferred, 0, '-1'), [staying.job.id])
  assert.equal(await space.redis.exists(jobKey(space, leaving.job.id)), 0)
  assert.equal(await client.cancel(leaving.job), false)

  const newcomer = await client.submit('verify', quick)
  await until(async () => (await waitingJobs(space)).length === 2)
  assert.deepEqual(await waitingJobs(space), [staying.job.id, newcomer.job.id])
})

test('of each lane the age of the job that is next is reported', async (t) => {
  const { space, client } = await clientFor(t)
  const minutes = { held: 2, deferred: 4 }
  for (const lane of ['held', 'deferred'] as const) {
    for (const age of [minutes[lane], 1]) {
      const { job } = await client.submit('hash', { password: 'x' }, { lane })
      const data = JSON.parse((await space.redis.hget(jobKey(space, job.id), 'data')) ?? '')
      data.enqueuedAt -= age * 60_000
      await space.redis.hset(jobKey(space, job.id), 'data', JSON.stringify(data))
    }
  }
  const { jobs, oldestMs } = await new QueueReporter([space.redis], space.prefix).read()
  assert.deepEqual([jobs.waiting, jobs.deferred], [2, 2])
  // The client's clock is ahead of Redis's or behind it by a part of a round trip.
  const clockMs = 1_000
  for (const [ms, age] of [
    [oldestMs.waiting, minutes.held],
    [oldestMs.deferred, minutes.deferred],
  ] as const)
    assert.ok(ms >= age * 60_000 - clockMs && ms < (age + 1) * 60_000, `${ms} ms`)
})
