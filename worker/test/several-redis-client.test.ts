// A client of two Redis: where its jobs go, and what becomes of them when one fails in any way.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PasswordClient, PasswordClientError, type PendingJob } from '@spillway/client/queue-client'
import { parseShards } from '@spillway/client/redis/shards'
import { redisCommand } from '@spillway/local/services/redis'
import { startStopwatch, until } from '@spillway/local/testing'
import { answerOf, readyClient, startedWorker } from './parts.ts'
import { activeJobs, type Space, waitingJobs } from './space.ts'
import { startTwoRedis, waitFor } from './two-redis.ts'

const { servers, both, spaces } = await startTwoRedis()
const shards = parseShards(both).map(({ id }) => id)
/** As long as a login of ours may be late because a Redis is lost. */
const LATE_MS = 2_000

/** A client that can reach both. */
async function clientOfBoth(space: Space, options: Parameters<typeof readyClient>[1] = {}): Promise<PasswordClient> {
  const client = await readyClient(space, { redisUrl: both, ...options })
  await until(() => client.redis.every(({ isUsable }) => isUsable()), { what: 'both in use' })
  return client
}

const submit = (client: PasswordClient, jobs: number, ms: number): Promise<PendingJob[]> =>
  Promise.all(Array.from({ length: jobs }, () => client.submit('verify', waitFor(ms))))

/** Resolves when the second one gets jobs, with how many that took. */
async function untilSecondIsUsed(client: PasswordClient): Promise<number> {
  let jobs = 0
  await until(async () => {
    jobs += 1
    const [one] = await submit(client, 1, 1)
    assert.ok(one)
    assert.deepEqual(await answerOf(one, 30_000), { kind: 'match' })
    return one.job.shard === shards[1]
  })
  return jobs
}

/** Each way in which the second Redis fails, and is well again. */
const faults: Record<string, { inject(): Promise<unknown>; mend(): Promise<unknown> }> = {
  killed: { inject: () => servers[1].kill(), mend: () => servers[1].start() },
  frozen: {
    inject: async () => servers[1].signal('SIGSTOP'),
    mend: async () => servers[1].signal('SIGCONT'),
  },
  'read-only': {
    inject: () => redisCommand(servers[1].url, 'REPLICAOF', '127.0.0.1', 1),
    mend: () => redisCommand(servers[1].url, 'REPLICAOF', 'NO', 'ONE'),
  },
  full: {
    inject: () => redisCommand(servers[1].url, 'CONFIG', 'SET', 'maxmemory', 1),
    mend: () => redisCommand(servers[1].url, 'CONFIG', 'SET', 'maxmemory', 0),
  },
}

test('jobs go to both and come back from both, and a worker of both counts once', async (t) => {
  const [first, second] = spaces(t)
  await startedWorker(first, { slots: 2, env: { REDIS_URL: both } })
  const client = await clientOfBoth(first)
  const before = await untilSecondIsUsed(client)
  assert.equal(client.load().workers, 1)
  assert.equal(client.load().slots, 2)
  const pending = await submit(client, 20, 50)
  const depths = await Promise.all(
    [first, second].map(async (s) => (await waitingJobs(s)).length + (await activeJobs(s)).length),
  )
  assert.ok(
    depths.every((depth) => depth >= 4),
    `one got next to nothing: ${depths}`,
  )
  for (const each of pending) assert.deepEqual(await answerOf(each), { kind: 'match' })
  await until(() => client.finishedJobs() === before + 20, { what: `all counted once` })
  assert.equal(new Set(pending.map(({ job }) => job.shard)).size, 2)
})

for (const [name, { inject, mend }] of Object.entries(faults)) {
  test(`one is ${name}: no job fails or is late, and within 5 s after its end it gets jobs again`, async (t) => {
    const [first, second] = spaces(t)
    await startedWorker(first, { slots: 8, env: { REDIS_URL: both } })
    let moved = 0
    const observer = {
      verdictReceived: () => undefined,
      verdictBroken: () => assert.fail('a verdict was broken'),
      jobAddedAgain: () => undefined,
      jobMoved: () => {
        moved += 1
      },
    }
    const client = await clientOfBoth(first, { observer })
    await untilSecondIsUsed(client)
    // Enough that some are in hand and some wait in either of them, for two and a half seconds in eight slots.
    const held = await submit(client, 40, 500)
    const answers = Promise.all(
      held.map(async (pending) => {
        const elapsedMs = startStopwatch()
        assert.deepEqual(await answerOf(pending, 30_000), { kind: 'match' }, name)
        return elapsedMs()
      }),
    )
    let isMended = false
    // Before anything is closed: what is left in both is deleted then.
    first.closing(async () => {
      if (!isMended) await mend()
    })
    await inject()
    const end = performance.now() + 3_000
    const late: number[] = []
    while (performance.now() < end) {
      const elapsedMs = startStopwatch()
      const [one] = await submit(client, 1, 10)
      assert.ok(one)
      late.push(elapsedMs())
      assert.deepEqual(await answerOf(one, 30_000), { kind: 'match' })
    }
    assert.ok(Math.max(...late) < LATE_MS, `a job was added after ${Math.max(...late)} ms`)
    // Those in hand are done anew.
    const slowest = Math.max(...(await answers))
    assert.ok(slowest < 2_500 + 2 * LATE_MS, `a job that was held took ${slowest} ms`)
    if (name !== 'full') assert.ok(moved > 0, 'no job was moved')
    await mend()
    isMended = true
    const back = startStopwatch()
    await untilSecondIsUsed(client)
    assert.ok(back() < 5_000, `back after ${back()} ms`)
    // What was moved away was taken back there, and nothing is left of it.
    await until(async () => (await waitingJobs(second)).length === 0, { what: 'no copy left' })
  })
}

test('jobs of a Redis that its workers cannot reach any more are done elsewhere', async (t) => {
  const [first, second] = spaces(t)
  const there = await startedWorker(second, { slots: 1 })
  const client = await clientOfBoth(first)
  await until(() => client.load().slots > 0)
  const held = await submit(client, 5, 500)
  await startedWorker(first, { slots: 2 })
  const answers = Promise.all(held.map((pending) => answerOf(pending, 30_000)))
  void there.close()
  assert.ok((await answers).every((verdict) => verdict?.kind === 'match'))
})

test('both lost: an error in time, as with one; one back: it goes on', async (t) => {
  const [first] = spaces(t)
  await startedWorker(first, { env: { REDIS_URL: both } })
  const client = await clientOfBoth(first)
  await until(() => client.load().slots > 0)
  await Promise.all(servers.map((server) => server.kill()))
  await until(() => !client.isReady())
  const elapsedMs = startStopwatch()
  await assert.rejects(client.submit('verify', waitFor(1)), (error) => {
    return error instanceof PasswordClientError && error.code === 'queue_unavailable'
  })
  assert.ok(elapsedMs() < LATE_MS)
  assert.equal(client.load().known, false)
  await servers[0].start()
  await until(() => client.isReady() && client.load().slots > 0, { what: 'one of them' })
  const [one] = await submit(client, 1, 1)
  assert.ok(one)
  assert.deepEqual(await answerOf(one), { kind: 'match' })
  await servers[1].start()
})

test('a drained Redis gets no jobs; those that it has are done, and found by their refs', async (t) => {
  const [first, second] = spaces(t)
  const client = await readyClient(second)
  const [old] = await submit(client, 1, 1)
  assert.ok(old)
  await startedWorker(first, { env: { REDIS_URL: both } })
  const draining = await clientOfBoth(first, { redisUrl: `${servers[0].url} drain:${servers[1].url}` })
  for (const each of await submit(draining, 10, 1)) {
    assert.deepEqual(await answerOf(each), { kind: 'match' })
    assert.equal(each.job.shard, shards[0])
  }
  assert.deepEqual(await answerOf(await draining.resume({ ...old.job, shard: shards[1] })), { kind: 'match' })
})
