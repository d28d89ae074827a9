// The place of a job in its queue, as its holder is told: from real lanes, while workers take from them.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { queueKey } from '@spillway/queue/jobs/keys'
import type { Lane, PasswordClient } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { answerOf, readyClient, startedWorker } from '../parts.ts'
import { spaceFor } from '../space.ts'

const slow = { password: 'right', storedHash: '$spillway-wait$300$' }
const quick = { password: 'right', storedHash: '$spillway-token$' }

async function added(client: PasswordClient, lane: Lane, request = slow) {
  return await client.submit('verify', request, lane)
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
  // By another process, which knows nothing of their adding. The held job has promoted the first two deferred ones, behind itself.
  for (const { ahead, pending } of jobs) {
    const resumed = await client.resume(pending.job)
    const { ahead: told, waitMs } = await resumed.expectation()
    assert.equal(told, ahead)
    assert.equal(waitMs, Number.POSITIVE_INFINITY)
  }
})

test('a job that was added a moment ago is told its place without asking Redis, where jobs that were added during a reading count twice', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
  await client.whenKnown(10_000)
  for (let ahead = 0; ahead < 3; ahead++) {
    const pending = await added(client, 'deferred')
    const { ahead: told = Number.NaN } = await pending.expectation()
    assert.ok(told >= ahead && told <= 2 * ahead + 1, `${told} for ${ahead}`)
  }
})

test('its time gets shorter as workers take what is ahead, and by those that join', async (t) => {
  const space = spaceFor(t)
  const client = await readyClient(space)
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
  const space = spaceFor(t)
  const client = await readyClient(space)
  const resumed = await client.resume((await added(client, 'held', quick)).job)
  // Anyone who writes to Redis can do this.
  await space.redis.set(queueKey(space.prefix, 'prioritized'), 'text')
  assert.equal(await answerOf(resumed, 1), undefined)
  const { ahead, waitMs } = await resumed.expectation()
  assert.equal(ahead, undefined)
  assert.ok(waitMs > 0)
})
