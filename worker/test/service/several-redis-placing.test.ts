// Jobs on their way to two Redis servers when one is killed: it took them, and has not said so.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { redisCommand } from '@spillway/infra/services/redis'
import type { PasswordClient, PendingJob } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { answerOf, readyClient, startedWorker } from '../parts.ts'
import { redisProxy, type Space, waitingJobs } from '../space.ts'
import { startTwoRedis, waitFor } from '../two-redis.ts'

const { servers, spaces } = await startTwoRedis()
const [one, two] = servers
const JOBS = 10

const requests = Array.from({ length: JOBS }, () => waitFor(1))

/** A client of both. There is no worker yet. */
async function openClient(space: Space, urls: readonly string[]): Promise<PasswordClient> {
  const client = await readyClient(space, { redisUrl: urls.join(' ') })
  await until(() => client.redis.every(({ isUsable }) => isUsable()), { what: 'both in use' })
  return client
}

async function expectAnswered(space: Space, added: readonly PendingJob[]): Promise<void> {
  await startedWorker(space)
  for (const pending of added) assert.deepEqual(await answerOf(pending), { kind: 'match' })
}

test('a job whose Redis takes it, and is killed before it says so, is added to the other one, and no copy stays', async (t) => {
  const [first, second] = spaces(t)
  const proxy = await redisProxy(second)
  const client = await openClient(first, [one.url, proxy.url])
  proxy.freezeReplies()
  const adding = Promise.all(requests.map((request) => client.submit('verify', request)))
  await until(async () => (await waitingJobs(second)).length > 0, { what: 'jobs in the second Redis' })
  await two.kill()
  // Its end reaches nobody while replies are frozen.
  proxy.cut()
  await expectAnswered(first, await adding)
  await two.start()
  const noCopyLeft = async () => {
    const { length } = await waitingJobs(second)
    if (length === 0) return true
    throw new Error(`${length} copies; in use: ${client.redis.map(({ isUsable }) => isUsable()).join()}`)
  }
  await until(noCopyLeft, { what: 'no copy left' })
})

test('a job that both fail, one after the other, is added when one of them is well again a moment later', async (t) => {
  const [first] = spaces(t)
  const client = await openClient(first, [one.url, two.url])
  const before = await additions()
  await redisCommand(one.url, 'CONFIG', 'SET', 'maxmemory', 1)
  two.signal('SIGSTOP')
  const adding = Promise.all(requests.map((request) => client.submit('verify', request)))
  await two.kill()
  // More attempts than jobs: one of them has failed everywhere, and is tried anew.
  const isTriedAnew = until(async () => (await additions()) - before > JOBS, { what: 'a job that is tried anew' })
  try {
    await Promise.race([adding, isTriedAnew])
  } finally {
    await redisCommand(one.url, 'CONFIG', 'SET', 'maxmemory', 0)
    await two.start()
  }
  await expectAnswered(first, await adding)
})

/** Attempts to add a job to the first Redis: no other script of a client is called by its digest */
async function additions(): Promise<number> {
  const info = String(await redisCommand(one.url, 'INFO', 'commandstats'))
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(info)?.[1] ?? 0)
}
