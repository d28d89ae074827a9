// A client of two Redis: where its jobs go, and what becomes of them when one fails in any way.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { redisCommand } from '@spillway/infra/services/redis'
import { type PasswordClient, PasswordClientError, type PendingJob } from '@spillway/queue/queue-client'
import { parseRedisServers } from '@spillway/queue/redis/servers'
import { test } from 'vitest'
import { answerOf, readyClient, startedWorker } from '../parts.ts'
import { type Space, waitingJobs } from '../space.ts'
import { isAnswered, startTwoRedis, submitAll, waitFor } from '../two-redis.ts'

const { servers, both, spaces } = await startTwoRedis()
const ids = parseRedisServers(both).map(({ id }) => id)

/** A client that can reach both. */
async function clientOfBoth(space: Space, options: Parameters<typeof readyClient>[1] = {}): Promise<PasswordClient> {
  const client = await readyClient(space, { redisUrl: both, ...options })
  await until(() => client.redis.every(({ isUsable }) => isUsable()), { what: 'both in use' })
  return client
}

/** Resolves when the second one gets jobs, with how many that took. */
async function untilSecondIsUsed(client: PasswordClient): Promise<number> {
  let jobs = 0
  await until(async () => {
    jobs += 1
    return (await isAnswered(client)).server === ids[1]
  })
  return jobs
}

/** Each way in which the second Redis fails, and is well again. */
const faults: Record<string, { inject(): Promise<unknown>; mend(): Promise<unknown> }> = {
  killed: { inject: () => servers[1].kill(), mend: () => servers[1].start() },
  frozen: { inject: async () => servers[1].signal('SIGSTOP'), mend: async () => servers[1].signal('SIGCONT') },
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
  const [first] = spaces(t)
  await startedWorker(first, { slots: 2, env: { REDIS_URL: both } })
  const client = await clientOfBoth(first)
  const before = await untilSecondIsUsed(client)
  assert.equal(client.load().workers, 1)
  assert.equal(client.load().slots, 2)
  const pending: PendingJob[] = []
  await until(async () => {
    pending.push(...(await submitAll(client, 10, 50)))
    return new Set(pending.map(({ job }) => job.server)).size === 2
  })
  for (const each of pending) assert.deepEqual(await answerOf(each), { kind: 'match' })
  await until(() => client.finishedJobs() === before + pending.length, { what: `all counted once` })
})

for (const [name, { inject, mend }] of Object.entries(faults)) {
  test(`one is ${name}: no job fails, and after its end it gets jobs again`, async (t) => {
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
    // Enough that some are in hand and some wait in either, for 2.5 s in eight slots.
    const held: PendingJob[] = []
    await until(async () => {
      held.push(...(await submitAll(client, 40, 500)))
      return held.some(({ job }) => job.server === ids[1])
    })
    const answers = Promise.all(held.map((pending) => answerOf(pending)))
    let isMended = false
    // Before anything is closed: what is left in both is deleted then.
    t.onTestFinished(async () => {
      if (!isMended) await mend()
    })
    await inject()
    for (let n = 0; n < 20; n += 1) await isAnswered(client, 10)
    // Those in hand are done anew.
    const matches = Array.from(held, () => ({ kind: 'match' }))
    assert.deepEqual(await answers, matches)
    if (name !== 'full') assert.ok(moved > 0, 'no job was moved')
    await mend()
    isMended = true
    await untilSecondIsUsed(client)
    // What was moved away was taken back there, and nothing is left of it.
    await until(async () => (await waitingJobs(second)).length === 0, { what: 'no copy left' })
  })
}

test('jobs of a Redis that its workers cannot reach any more are done elsewhere', async (t) => {
  const [first, second] = spaces(t)
  const there = await startedWorker(second, { slots: 1 })
  const client = await clientOfBoth(first)
  await until(() => client.load().slots > 0)
  const held = await submitAll(client, 5, 500)
  await startedWorker(first, { slots: 2 })
  const answers = Promise.all(held.map((pending) => answerOf(pending)))
  void there.close()
  assert.ok((await answers).every((verdict) => verdict?.kind === 'match'))
})

test('both lost: an error, as with one; one back: it goes on', async (t) => {
  const [first] = spaces(t)
  await startedWorker(first, { env: { REDIS_URL: both } })
  const client = await clientOfBoth(first)
  await until(() => client.load().slots > 0)
  const lost = new Set(servers)
  const restart = async (server: (typeof servers)[number]) => {
    if (lost.delete(server)) await server.start()
  }
  // Before anything is closed: what is left in both is deleted then.
  t.onTestFinished(async () => void (await Promise.all(servers.map(restart))))
  await Promise.all(servers.map((server) => server.kill()))
  await until(() => !client.isReady())
  await assert.rejects(client.submit('verify', waitFor(1)), (error) => {
    return error instanceof PasswordClientError && error.code === 'queue_unavailable'
  })
  // A client at rest reads the load once a second.
  await until(() => !client.load().known, { what: 'a load that is not known' })
  await restart(servers[0])
  await until(() => client.isReady() && client.load().slots > 0, { what: 'one of them' })
  await isAnswered(client)
})

test('a drained Redis gets no jobs; those that it has are done, and found by their refs', async (t) => {
  const [first, second] = spaces(t)
  const client = await readyClient(second)
  const [old] = await submitAll(client, 1, 1)
  assert.ok(old)
  await startedWorker(first, { env: { REDIS_URL: both } })
  const draining = await clientOfBoth(first, { redisUrl: `${servers[0].url} drain:${servers[1].url}` })
  for (const each of await submitAll(draining, 10, 1)) {
    assert.deepEqual(await answerOf(each), { kind: 'match' })
    assert.equal(each.job.server, ids[0])
  }
  assert.deepEqual(await answerOf(await draining.resume({ ...old.job, server: ids[1] })), { kind: 'match' })
})
