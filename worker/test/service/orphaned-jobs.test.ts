// Jobs that Redis gave to a worker in a reply that was lost with its connection.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { readMetric } from '@spillway/infra/harness/api-client'
import { closedGate } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/test/redis-monitor'
import { lockKey, queueKey } from '@spillway/queue/keys'
import { test } from 'vitest'
import { jobsAreCounted, keepingLog, readyClient, resultOf, startedWorker, submit } from '../parts.ts'
import { activeJobs, jobKey, redisProxy, type Space, spaceFor, waitingJobs } from '../space.ts'

/** Twice the time from a look for lost jobs to their requeueing. */
const REQUEUED_MS = 100
const lasting = (ms: number) => ({ password: 'right', storedHash: `$spillway-wait$${ms}$` })

/** No worker looks for jobs without a lock from now on: a machine that stands still for two seconds would cause them. */
const noStalledChecks = ({ redis, prefix }: Space) => redis.set(queueKey(prefix, 'stalled-check'), '', 'PX', 600_000)

const requeued = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_jobs_requeued_total')
const slotsBusy = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_worker_slots_busy')
const stalled = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_jobs_stalled_total')

test('a job whose reply was lost with the connection is requeued before its lock has expired', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const worker = await startedWorker({ ...space, redisUrl: proxy.url }, { slots: 1 })
  const client = await readyClient(space)
  const gate = await closedGate(t)
  const first = await submit(client, 'verify', { password: 'right', storedHash: gate.storedHash })
  await until(async () => (await activeJobs(space)).includes(first.job.id))
  const second = await submit(client, 'verify', lasting(1))

  await noStalledChecks(space)
  proxy.freezeReplies()
  gate.open()
  await until(async () => (await activeJobs(space)).includes(second.job.id), { what: 'the next job given out' })
  // Its lock outlasts the test: only a requeue brings it back.
  await space.redis.pexpire(lockKey(space.prefix, second.job.id), 600_000)
  proxy.cut()

  assert.deepEqual(await resultOf(second), { kind: 'match' })
  assert.deepEqual(await resultOf(first), { kind: 'match' })
  assert.deepEqual([await requeued(worker), await stalled(worker)], [1, 0])
})

test('a job that a stopping worker gives back at its second try is not logged as lost', async (t) => {
  const space = spaceFor(t)
  const { lines, log } = keepingLog()
  const worker = await startedWorker(space, { slots: 1, log, env: { SHUTDOWN_GRACE_MS: '0' } })
  const client = await readyClient(space)
  const gate = await closedGate(t)
  const { job } = await submit(client, 'verify', { password: 'right', storedHash: gate.storedHash })
  await until(async () => (await activeJobs(space)).includes(job.id))
  const lock = lockKey(space.prefix, job.id)
  const own = (await space.redis.get(lock)) ?? assert.fail('the job has no lock')
  // BullMQ moves no job with another lock. The lock is the worker's again as soon as this has failed.
  await space.redis.set(lock, 'of another worker')
  const { warn } = log
  log.warn = (facts: unknown, msg?: unknown) => {
    warn({ ...Object(facts) }, String(msg))
    if (msg === 'job could not be requeued') void space.redis.set(lock, own)
  }
  await worker.close()
  assert.deepEqual(await waitingJobs(space), [job.id])
  const requeued = lines.filter(({ jobId, msg }) => jobId === job.id && /requeued/.test(msg)).map(({ msg }) => msg)
  assert.deepEqual(requeued, [
    'job could not be requeued',
    'orphaned job requeued: it was active for this worker, which did not have it in hand',
  ])
  gate.open()
})

test('jobs in hand stay when connections break, those of other workers as well, and each is hashed once', async (t) => {
  const space = spaceFor(t)
  const proxy = await redisProxy(space)
  const through = { ...space, redisUrl: proxy.url }
  const workers = [await startedWorker(through, { slots: 1 }), await startedWorker(through, { slots: 1 })]
  const client = await readyClient(space)
  const gate = await closedGate(t)
  const gated = { password: 'right', storedHash: gate.storedHash }
  const pending = await Promise.all(['a', 'b'].map(() => submit(client, 'verify', gated)))
  // Redis has them given out before its replies are read.
  for (const worker of workers) await until(async () => (await slotsBusy(worker)) === 1)
  await noStalledChecks(space)
  const monitor = await monitorRedis(space.redisUrl)
  space.closing(async () => monitor.close())
  const active = queueKey(space.prefix, 'active')
  const looks = () => monitor.commands.filter(({ command: [name, key] }) => name === 'lrange' && key === active)
  proxy.cut()
  // Each worker looks for lost jobs once it is back, and requeues them a moment later.
  await until(() => looks().length >= workers.length)
  await sleep(REQUEUED_MS)
  gate.open()

  for (const job of pending) assert.deepEqual(await resultOf(job), { kind: 'match' })
  for (const worker of workers) {
    assert.deepEqual([await requeued(worker), await stalled(worker)], [0, 0])
    await jobsAreCounted(worker, 'verify hashed 1')
  }
  assert.deepEqual(await waitingJobs(space), [])
})

for (const [what, other] of [
  ['taken again', undefined],
  ['left to the worker that has taken it', 'of another worker'],
] as const) {
  test(`the lost lock of a job in hand is ${what}`, async (t) => {
    const space = spaceFor(t)
    const { redis, prefix } = space
    const { lines, log } = keepingLog()
    const worker = await startedWorker(space, { slots: 1, log })
    const client = await readyClient(space)
    const gate = await closedGate(t)
    const pending = await submit(client, 'verify', { password: 'right', storedHash: gate.storedHash })
    const { id } = pending.job
    await until(async () => (await activeJobs(space)).includes(id))
    await noStalledChecks(space)
    const lock = lockKey(prefix, id)
    const own = await redis.get(lock)
    assert.ok(own)
    await (other === undefined ? redis.del(lock) : redis.set(lock, other))
    await until(() => lines.some(({ msg, jobId }) => msg === 'lock of a job in hand lost' && jobId === id))
    assert.equal(await redis.get(lock), other ?? own)
    assert.ok((await readMetric(worker.opsUrl, 'spillway_job_locks_lost_total')) >= 1)
    gate.open()
    assert.deepEqual(await resultOf(pending), { kind: 'match' })
    await jobsAreCounted(worker, 'verify hashed 1')
    await redis.del(lock)
  })
}

test('a job in hand that Redis gives out a second time is hashed once', async (t) => {
  const space = spaceFor(t)
  const { redis, prefix } = space
  const worker = await startedWorker(space, { slots: 2 })
  const client = await readyClient(space)
  const gate = await closedGate(t)
  const pending = await submit(client, 'verify', { password: 'right', storedHash: gate.storedHash })
  const { id } = pending.job
  await until(async () => (await activeJobs(space)).includes(id))
  // As where its lock expired, and nobody else takes it.
  await redis.del(lockKey(prefix, id))
  await redis.lmove(queueKey(prefix, 'active'), queueKey(prefix, 'wait'), 'LEFT', 'RIGHT')
  await redis.zadd(queueKey(prefix, 'marker'), 0, '0')
  await until(async () => (await redis.hget(jobKey(space, id), 'ats')) === '2', { what: 'the job taken again' })
  gate.open()
  assert.deepEqual(await resultOf(pending), { kind: 'match' })
  await until(async () => (await activeJobs(space)).length === 0)
  await jobsAreCounted(worker, 'verify hashed 1')
})
