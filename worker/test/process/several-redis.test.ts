// A worker that takes jobs from two Redis with one set of slots.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { answerOf, jobsAreCounted, readyClient, startedWorker } from '../parts.ts'
import { activeJobs, waitingJobs } from '../space.ts'
import { isAnswered, startTwoRedis, submitAll } from '../two-redis.ts'

const { servers, both, spaces } = await startTwoRedis()

test('a worker answers jobs of both, and publishes itself to each under one id', async (t) => {
  const [first, second] = spaces(t)
  const worker = await startedWorker(first, { env: { REDIS_URL: both } })
  for (const space of [first, second]) {
    const client = await readyClient(space)
    await isAnswered(client)
  }
  await jobsAreCounted(worker, 'verify hashed 2')
  const ids = await Promise.all([first, second].map(({ redis, prefix }) => redis.hkeys(`${prefix}:capacity`)))
  assert.equal(ids[0]?.length, 1)
  assert.deepEqual(ids[0], ids[1])
})

test('all slots are used while only one queue has work, and a job of the other is not behind it', async (t) => {
  const [first, second] = spaces(t)
  const slots = 4
  const flooding = await readyClient(first)
  const trickling = await readyClient(second)
  await submitAll(flooding, 200, 300)
  await startedWorker(first, { slots, env: { REDIS_URL: both, SHUTDOWN_GRACE_MS: '0' } })
  await until(async () => (await activeJobs(first)).length >= slots, { what: 'a worker that is busy' })
  await isAnswered(trickling)
  assert.ok((await waitingJobs(first)).length > slots, 'the flood went first')
  await until(async () => (await activeJobs(first)).length >= slots, { what: 'all slots used again' })
  assert.ok((await waitingJobs(first)).length > 0)
})

test('slots that one queue leaves are taken for the other, although its own job goes on', async (t) => {
  const [first, second] = spaces(t)
  const [one, two] = [await readyClient(first), await readyClient(second)]
  // The only slot of the second, while the first has the others.
  await submitAll(one, 4, 1_000)
  await startedWorker(first, { slots: 4, env: { REDIS_URL: both, SHUTDOWN_GRACE_MS: '0' } })
  await until(async () => (await activeJobs(first)).length === 4)
  // Longer than anything here is waited for.
  await submitAll(two, 1, 90_000)
  await until(async () => (await activeJobs(second)).length === 1)
  const short = await submitAll(two, 12, 20)
  const answers = await Promise.all(short.map((pending) => answerOf(pending)))
  const matches = Array.from(short, () => ({ kind: 'match' }))
  assert.deepEqual(answers, matches)
})

test('a worker starts with the Redis server that it can reach, and takes from the other when it is there', async (t) => {
  const [first, second] = spaces(t)
  await servers[1].kill()
  const worker = await startedWorker(first, { env: { REDIS_URL: both } })
  const client = await readyClient(first)
  await isAnswered(client)
  assert.equal((await fetch(`${worker.opsUrl}/readyz`)).status, 200)
  const gauges = await (await fetch(`${worker.opsUrl}/metrics`)).text()
  assert.deepEqual(
    [...gauges.matchAll(/^spillway_redis_connected(\{.*\}) (\d)$/gm)].map(([, label, value]) => `${label} ${value}`),
    servers.map(({ url }, n) => `{redis="${new URL(url).host}"} ${1 - n}`),
  )
  await servers[1].start()
  await isAnswered(await readyClient(second))
})

test('a worker goes on with one while the other is frozen or killed, stays alive, and is back with it', async (t) => {
  const [first, second] = spaces(t)
  const worker = await startedWorker(first, { env: { REDIS_URL: both, STUCK_AFTER_MS: '4000' } })
  const client = await readyClient(first)
  for (const fault of ['SIGSTOP', 'SIGKILL'] as const) {
    servers[1].signal(fault)
    const end = performance.now() + 5_000
    while (performance.now() < end) {
      await isAnswered(client, 100, fault)
    }
    assert.equal((await fetch(`${worker.opsUrl}/healthz`)).status, 200, fault)
    if (fault === 'SIGSTOP') servers[1].signal('SIGCONT')
    else await servers[1].start()
    await isAnswered(await readyClient(second), 1, fault)
  }
})
