// Workers with other keys take nothing from those who have the right ones, and destroy no job.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { redisTime } from '@spillway/infra/rig/clocks'
import { countOtherWorkers } from '@spillway/queue/jobs/capacity'
import { canaryKey, canaryOf, capacityKey } from '@spillway/queue/wire/capacity'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { test } from 'vitest'
import { readWorkerConfig } from '../../src/config.ts'
import { RunningWorker } from '../../src/consumer/start.ts'
import { entry } from '../capacity-entry.ts'
import {
  answerOf,
  clientAndWorker,
  clientFor,
  jobsAreCounted,
  jobsCounted,
  keepingLog,
  sealKeys,
  startedWorker,
  submitted,
  workerEnvironment,
} from '../parts.ts'
import { activeJobs, type Space, spaceFor } from '../space.ts'

const otherKeys = `other:${randomBytes(32).toString('base64')}`
const match = { kind: 'match' }

/** Starts a worker without waiting until it takes jobs. */
function startWithKeys(space: Space, keys: string) {
  const { lines, log } = keepingLog()
  const config = readWorkerConfig({ ...workerEnvironment(space), LOG_LEVEL: 'silent', SPILLWAY_SEAL_KEYS: keys })
  let takesJobs = false
  const starting = RunningWorker.start(config, 1, log).then((worker) => {
    takesJobs = true
    return worker
  })
  space.closing(async () => (await starting).close())
  return { lines, starting, takesJobs: () => takesJobs }
}

const isRefusal = ({ msg }: { msg: string }) =>
  msg === 'the workers of this queue have other keys: this one takes no jobs'

test.concurrent('a worker with other keys than a living one takes nothing and says what to compare, until that is gone', async (t) => {
  const { space, client } = await clientFor(t)
  const right = await startedWorker(space)
  const wrong = startWithKeys(space, otherKeys)
  const refusal = await until(() => wrong.lines.find(isRefusal))
  assert.equal(refusal.reason, 'compare SPILLWAY_SEAL_KEYS with theirs')
  for (let n = 0; n < 20; n += 1) assert.deepEqual(await answerOf(await submitted(client)), match)
  assert.equal(wrong.takesJobs(), false)
  assert.equal(client.load().workers, 1)
  assert.equal(client.hasOtherKeys(), false)
  await right.close()
  // The canary outlives it: who deploys other keys is told.
  assert.equal(await space.redis.get(canaryKey(space.prefix)), canaryOf(parseKeyring(sealKeys), space.prefix))
  await until(wrong.takesJobs, { what: 'a worker whose keys nobody else has' })
  await until(() => client.hasOtherKeys())
})

test.concurrent('a worker with the keys of a living one begins at once, whoever else has left a canary', async (t) => {
  const { space, client } = await clientAndWorker(t)
  await space.redis.set(canaryKey(space.prefix), canaryOf(parseKeyring(otherKeys), space.prefix), 'EX', 60)
  await startedWorker(space)
  await until(() => client.load().workers === 2)
})

test.concurrent('a canary that nobody renews, or without an end, keeps no worker from beginning for long', async (t) => {
  const space = spaceFor(t)
  for (const life of [[], ['EX', 100], ['EX', 49]] as const) {
    const [, seconds] = life
    if (seconds === undefined) await space.redis.set(canaryKey(space.prefix), 'x')
    else await space.redis.set(canaryKey(space.prefix), 'x', 'EX', seconds)
    await (await startedWorker(space)).close()
  }
})

test.concurrent('a job that does not open goes back, and another worker answers it', async (t) => {
  const { space, client } = await clientFor(t)
  const wrong = await startedWorker(space, { env: { SPILLWAY_SEAL_KEYS: otherKeys }, slots: 2 })
  // Both have begun, as where neither could see the other.
  const keys = canaryOf(parseKeyring(sealKeys), space.prefix)
  const timer = setInterval(async () => {
    const pretended = { ...entry, keys, at: await redisTime(space.redis) }
    await space.redis.hset(capacityKey(space.prefix), 'pretended', JSON.stringify(pretended))
  }, 50)
  const right = await startedWorker(space, { slots: 1 }).finally(() => clearInterval(timer))
  await until(() => client.load().workers === 2)
  const all = await Promise.all(Array.from({ length: 20 }, () => submitted(client)))
  for (const pending of all) assert.deepEqual(await answerOf(pending), match)
  await jobsAreCounted(right, 'verify hashed 20')
  await jobsAreCounted(wrong)
  assert.equal(client.hasOtherKeys(), false)
})

test.concurrent('a worker that stands still for seconds counts among those who may open a job', async (t) => {
  const { redis, prefix } = spaceFor(t)
  const at = await redisTime(redis)
  for (const [name, agoMs] of Object.entries({ still: 5_000, gone: 12_000 }))
    await redis.hset(capacityKey(prefix), name, JSON.stringify({ ...entry, at: at - agoMs }))
  assert.equal(await countOtherWorkers(redis, prefix, 'this'), 1)
})

test.concurrent('a job that does not open is kept where Redis does not say whether there are other workers', async (t) => {
  const { space, client } = await clientFor(t)
  const user = space.prefix.replace(/[{}]/g, '')
  const allow = (...rights: string[]) => space.redis.call('ACL', 'SETUSER', user, 'on', '>secret', ...rights)
  await allow('~*', '&*', '+@all')
  space.closing(() => space.redis.call('ACL', 'DELUSER', user))
  const REDIS_URL = `redis://${user}:secret@${new URL(space.redisUrl).host}`
  const { lines, log } = keepingLog()
  const wrong = await startedWorker(space, { env: { REDIS_URL, SPILLWAY_SEAL_KEYS: otherKeys }, slots: 1, log })
  await allow('-time')
  const pending = await submitted(client)
  await until(() => lines.some(({ msg }) => msg === 'jobs do not open here: they are left to other workers'))
  await wrong.close()
  await startedWorker(space)
  assert.deepEqual(await answerOf(pending), match)
})

test.concurrent('a job that no worker can open fails after two', async (t) => {
  const { space, client } = await clientFor(t, { keyring: parseKeyring(otherKeys) })
  const workers = [await startedWorker(space), await startedWorker(space)]
  await until(() => client.load().workers === 2 && client.hasOtherKeys())
  await client.submit('hash', { password: 'x' })
  const counted = async () => (await Promise.all(workers.map(jobsCounted))).flat()
  await until(async () => (await counted()).length > 0)
  assert.deepEqual(await counted(), ['hash forged 1'])
  assert.deepEqual(await activeJobs(space), [])
})

test.concurrent('entries that somebody made up keep a worker from beginning only while they are fresh', async (t) => {
  const space = spaceFor(t)
  const at = await redisTime(space.redis)
  const made = [{ ...entry, keys: 'x', at }, { keys: 1, at }, { keys: 'x', at: 'x' }, 'x', 1]
  for (const [n, each] of made.entries())
    await space.redis.hset(capacityKey(space.prefix), `liar-${n}`, JSON.stringify(each))
  await startedWorker(space)
})
