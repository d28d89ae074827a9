// The line in a real Redis: open jobs before ticketed ones, which get their turn all the same; jobs
// of known devices first; jobs that are removed, or redeemed elsewhere; what is reported of them.
import assert from 'node:assert/strict'
import { closedGate } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import type { PasswordClient } from '@spillway/queue/client'
import { queueKey } from '@spillway/queue/keys'
import { QueueReporter } from '@spillway/queue/report'
import { test } from 'vitest'
import { clientFor, type JobOptions, readyClient, resultOf, startedWorker, submit } from '../parts.ts'
import { activeJobs, jobKey, type Space, spaceFor, waitingJobs } from '../space.ts'

const request = { password: 'right', storedHash: '$spillway-token$' }
const match = { kind: 'match' }
const ticketed = { place: 'ticketed' } as const

const added = (client: PasswordClient, options?: JobOptions) => submit(client, 'verify', request, options)
const line = ({ redis, prefix }: Space) => redis.zrange(queueKey(prefix, 'prioritized'), 0, '-1')

test('an open job goes before ticketed ones, and promotes the two that have waited longest', async (t) => {
  const { space, client } = await clientFor(t)
  const inLine = [await added(client, ticketed), await added(client, ticketed), await added(client, ticketed)]
  assert.deepEqual(
    inLine.map(({ number }) => number),
    [1, 2, 3],
  )
  const newcomer = await added(client)
  assert.equal(newcomer.number, undefined)
  const [first, second, third] = inLine.map(({ job }) => job.id)
  await until(async () => (await waitingJobs(space)).length === 3)
  assert.deepEqual(await waitingJobs(space), [second, first, newcomer.job.id])
  assert.deepEqual(await line(space), [third])

  await startedWorker(space)
  for (const pending of [newcomer, ...inLine]) assert.deepEqual(await resultOf(pending), match)
})

test('a job of a known device goes first; beyond their share of the capacity such jobs wait like others', async (t) => {
  const { space, client } = await clientFor(t)
  const others = [await added(client), await added(client)]
  const asked = { holdMs: 60_000, ticketLifeMs: 60_000, goesBeforeTickets: false }
  const known = client.admitKnownDevice(asked)
  assert.ok('place' in known)
  const job = { id: 'known', name: 'verify', deadline: client.now() + 60_000 } as const
  const pending = await client.submit({ job, request, admitted: known, presentMs: 60_000 })
  assert.deepEqual(await waitingJobs(space), [...others.map(({ job }) => job.id).reverse(), 'known'])

  // Without workers half of the capacity is one job, and nothing is open.
  const next = client.admitKnownDevice(asked)
  assert.ok('place' in next)
  assert.deepEqual([next.place, next.goesFirst], ['ticketed', false])
  next.end()
  await startedWorker(space)
  for (const each of [pending, ...others]) assert.deepEqual(await resultOf(each), match)
})

test('a job that is removed leaves its place to the next one; a job in hand is not removed', async (t) => {
  const { space, client } = await clientFor(t)
  const [leaving, staying] = [await added(client, ticketed), await added(client, ticketed)]
  assert.equal(await client.remove(leaving.job), true)
  assert.deepEqual(await line(space), [staying.job.id])
  assert.equal(await space.redis.exists(jobKey(space, leaving.job.id)), 0)
  assert.equal((await client.resume(leaving.job)).state, 'absent')

  await startedWorker(space)
  assert.deepEqual(await resultOf(staying), match)
  const gate = await closedGate(t)
  const inHand = await submit(client, 'verify', { ...request, storedHash: gate.storedHash })
  await until(async () => (await activeJobs(space)).length === 1)
  assert.equal(await client.remove(inHand.job), false)
  gate.open()
  assert.deepEqual(await resultOf(inHand), match)
})

test('a result is announced where its ticket was redeemed last, and read by all others', async (t) => {
  const space = spaceFor(t)
  const announced = { early: 0, late: 0 }
  const observed = (who: keyof typeof announced) =>
    readyClient(space, {
      observer: { resultReceived: (source) => (announced[who] += source === 'message' ? 1 : 0), resultBroken() {} },
    })
  const [submitting, early, late] = [await readyClient(space), await observed('early'), await observed('late')]
  const pending = await added(submitting, { ...ticketed, presentMs: 1 })
  await early.present(pending.job, 60_000)
  const resumed = await early.resume(pending.job)
  assert.equal(resumed.state, 'waiting')
  const waiting = [resultOf(resumed), resultOf(await early.resume(pending.job))]
  await startedWorker(space)
  assert.deepEqual(await Promise.all([...waiting, resultOf(pending)]), [match, match, match])
  const found = await late.resume(pending.job)
  assert.equal(found.state, 'result')
  assert.deepEqual(await resultOf(found, 0), match)
  assert.deepEqual(announced, { early: 1, late: 0 })
})

test('of open and of ticketed jobs the age of the one that is next is reported', async (t) => {
  const { space, client } = await clientFor(t)
  const minutes = { open: 2, ticketed: 4 }
  for (const place of ['open', 'ticketed'] as const) {
    for (const age of [minutes[place], 1]) {
      const { job } = await added(client, { place })
      const data = JSON.parse((await space.redis.hget(jobKey(space, job.id), 'data')) ?? '')
      data.enqueuedAt -= age * 60_000
      await space.redis.hset(jobKey(space, job.id), 'data', JSON.stringify(data))
    }
  }
  const { jobs, oldestMs } = await new QueueReporter(space.redis, space.prefix).read()
  assert.deepEqual([jobs.open, jobs.ticketed], [2, 2])
  // The client's clock is ahead of Redis's or behind it by a part of a round trip, which may be long.
  const clockMs = 10_000
  for (const place of ['open', 'ticketed'] as const) {
    const [ms, least] = [oldestMs[place], minutes[place] * 60_000]
    assert.ok(ms >= least - clockMs && ms < least + 60_000, `${ms} ms`)
  }
})
