// Jobs that Redis gave to a worker in a reply that was lost with its connection.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { readMetric } from '@spillway/infra/rig/api-client'
import { closedGate } from '@spillway/infra/rig/namespace'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { retakeLock } from '@spillway/queue/jobs/jobs'
import { lockKey, queueKey } from '@spillway/queue/jobs/keys'
import { RedisWatch } from '@spillway/queue/redis/watch'
import { test } from 'vitest'
import { JobWatch } from '../../src/consumer/job-watch.ts'
import { WorkerMetrics } from '../../src/ops/metrics.ts'
import { answerOf, clientFor, jobsAreCounted, readyClient, startedWorker } from '../parts.ts'
import { activeJobs, jobKey, redisProxy, spaceFor, waitingJobs } from '../space.ts'

/** Twice the time from a look for lost jobs to their requeueing. */
const REQUEUED_MS = 100
const lasting = (ms: number) => ({ password: 'right', storedHash: `$spillway-wait$${ms}$` })

const log = createLogger({ service: 'test', level: 'silent' })
const requeued = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_jobs_requeued_total')
const slotsBusy = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_worker_slots_busy')
const stalled = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_jobs_stalled_total')

test('a job whose reply was lost with the connection is requeued before its lock has expired', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const worker = await startedWorker({ ...space, redisUrl: proxy.url }, { slots: 1 })
  const client = await readyClient(space)
  const gate = await closedGate(t)
  const first = await client.submit('verify', { password: 'right', storedHash: gate.storedHash })
  await until(async () => (await activeJobs(space)).includes(first.job.id))
  const second = await client.submit('verify', lasting(1))

  proxy.freezeReplies()
  gate.open()
  await until(async () => (await activeJobs(space)).includes(second.job.id), { what: 'the next job given out' })
  // Its lock outlasts the test: only a requeue brings it back.
  await space.redis.pexpire(lockKey(space.prefix, second.job.id), 600_000)
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
  const gate = await closedGate(t)
  const gated = { password: 'right', storedHash: gate.storedHash }
  const pending = await Promise.all(['a', 'b'].map(() => client.submit('verify', gated)))
  // Redis has them given out before its replies are read.
  for (const worker of workers) await until(async () => (await slotsBusy(worker)) === 1)
  const monitor = await monitorRedis(space.redisUrl)
  space.closing(async () => monitor.close())
  const active = queueKey(space.prefix, 'active')
  const looks = () => monitor.commands.filter(({ command: [name, key] }) => name === 'lrange' && key === active)
  proxy.cut()
  // Each worker looks for lost jobs once it is back, and requeues them a moment later.
  await until(() => looks().length >= workers.length)
  await sleep(REQUEUED_MS)
  gate.open()

  for (const job of pending) assert.deepEqual(await answerOf(job), { kind: 'match' })
  for (const worker of workers) {
    assert.deepEqual([await requeued(worker), await stalled(worker)], [0, 0])
    await jobsAreCounted(worker, 'verify hashed 1')
  }
  assert.deepEqual(await waitingJobs(space), [])
})

test('a job in hand that Redis gives out a second time is hashed once', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const worker = await startedWorker(space, { slots: 2 })
  const client = await readyClient(space)
  const gate = await closedGate(t)
  const pending = await client.submit('verify', { password: 'right', storedHash: gate.storedHash })
  const { id } = pending.job
  await until(async () => (await activeJobs(space)).includes(id))
  // As where its lock expired, and nobody else takes it.
  await redis.del(lockKey(prefix, id))
  await redis.lmove(queueKey(prefix, 'active'), queueKey(prefix, 'wait'), 'LEFT', 'RIGHT')
  await redis.zadd(queueKey(prefix, 'marker'), 0, '0')
  await until(async () => (await redis.hget(jobKey(space, id), 'ats')) === '2', { what: 'the job taken again' })
  gate.open()
  assert.deepEqual(await answerOf(pending), { kind: 'match' })
  await until(async () => (await activeJobs(space)).length === 0)
  await jobsAreCounted(worker, 'verify hashed 1')
})

test('a lock that was lost is taken again only while nobody else has the job, and it is still in hand', async (t) => {
  const { redis, prefix } = spaceFor(t)
  const lock = lockKey(prefix, 'job')
  const retake = () => retakeLock(redis, prefix, { id: 'job', token: 'mine' }, 60_000)
  await retake()
  assert.equal(await redis.get(lock), null)
  await redis.lpush(queueKey(prefix, 'active'), 'job')
  await redis.set(lock, 'of another worker')
  await retake()
  assert.equal(await redis.get(lock), 'of another worker')
  await redis.del(lock)
  await redis.sadd(queueKey(prefix, 'stalled'), 'job')
  await retake()
  assert.equal(await redis.get(lock), 'mine')
  assert.equal(await redis.exists(queueKey(prefix, 'stalled')), 0)
})

test('a job whose reply is still on its way when the connection is ready again is not requeued', async (t) => {
  const { space, redis, prefix, client } = await clientFor(t)
  const late = await client.submit('verify', lasting(1))
  const lost = await client.submit('verify', lasting(1))
  for (const { job } of [late, lost]) {
    await redis.lmove(queueKey(prefix, 'wait'), queueKey(prefix, 'active'), 'RIGHT', 'LEFT')
    await redis.set(lockKey(prefix, job.id), 'consumer:1', 'PX', 60_000)
  }
  const watch = new RedisWatch(log)
  let looks = 0
  const orphaned = new JobWatch({
    ...{ redis, prefix, watch, log, metrics: new WorkerMetrics(), consumerId: 'consumer' },
    isInHand: (jobId) => jobId === late.job.id && looks++ > 0,
  })
  space.closing(() => orphaned.close())
  redis.emit('ready')
  await until(async () => (await waitingJobs(space)).length > 0)
  assert.deepEqual(await waitingJobs(space), [lost.job.id])
  assert.deepEqual(await activeJobs(space), [late.job.id])
})

test('a job that Redis gave to a worker that takes none any more is requeued when that ends', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const worker = await startedWorker(space, { slots: 1 })
  const client = await readyClient(space)
  const gate = await closedGate(t)
  const first = await client.submit('verify', { password: 'right', storedHash: gate.storedHash })
  await until(async () => (await activeJobs(space)).includes(first.job.id))
  // As the script does whose reply comes too late.
  const token = String(await redis.get(lockKey(prefix, first.job.id))).replace(/:.*/, ':9999')
  const ended = worker.close()
  const late = await client.submit('verify', lasting(1))
  await until(async () => (await waitingJobs(space)).includes(late.job.id))
  await redis.lmove(queueKey(prefix, 'wait'), queueKey(prefix, 'active'), 'RIGHT', 'LEFT')
  await redis.set(lockKey(prefix, late.job.id), token, 'PX', 60_000)
  gate.open()
  await ended
  assert.deepEqual(await activeJobs(space), [])
  assert.deepEqual(await waitingJobs(space), [late.job.id])
})
