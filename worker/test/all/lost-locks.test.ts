// A job whose lock is lost in hand costs neither a second hash nor a look through the queue.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { readMetric } from '@spillway/infra/rig/api-client'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { jobKey, lockKey, queueKey } from '@spillway/queue/jobs/keys'
import { type TestContext, test } from 'vitest'
import { startOwnRedis } from '../own-redis.ts'
import { answerOf, jobsAreCounted, readyClient, startedWorker } from '../parts.ts'
import { activeJobs, spaceFor } from '../space.ts'
import { startedWorkerProcess } from '../worker-process.ts'

const redisUrl = await startOwnRedis()
const lasting = (ms: number) => ({ password: 'right', storedHash: `$spillway-wait$${ms}$` })
const locksLost = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_job_locks_lost_total')
const stalled = ({ opsUrl }: { opsUrl: string }) => readMetric(opsUrl, 'spillway_jobs_stalled_total')

/** Loses the lock of a job in hand. Resolves with how often the job was taken. */
async function loseLock(t: TestContext, slots: readonly number[]): Promise<number> {
  const space = spaceFor(t, redisUrl)
  const { redis, prefix } = space
  const workers = await Promise.all(slots.map((count) => startedWorker(space, { slots: count })))
  const client = await readyClient(space)
  const monitor = await monitorRedis(redisUrl)
  t.onTestFinished(() => monitor.close())
  const first = await client.submit('verify', lasting(3_000))
  await until(async () => (await activeJobs(space)).includes(first.job.id))
  const others = await Promise.all(Array.from({ length: 300 }, () => client.submit('verify', lasting(10))))
  await redis.config('RESETSTAT')
  await redis.del(lockKey(prefix, first.job.id))

  for (const pending of [first, ...others]) assert.deepEqual(await answerOf(pending), { kind: 'match' })
  // A worker reads a job when it takes one, and a gateway the capacity four times a second.
  const calls = /cmdstat_hgetall:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]
  assert.ok(Number(calls) < 1_000, `${calls} hashes read for 301 jobs`)
  await until(async () => (await redis.llen(queueKey(prefix, 'active'))) === 0)
  const lost = await Promise.all(workers.map(locksLost))
  for (const worker of workers) await worker.close()
  await client.close()
  const taken = monitor.commands.filter(
    ({ command: [name, key, field] }) => name === 'hincrby' && key === jobKey(prefix, first.job.id) && field === 'ats',
  ).length
  assert.ok(taken > 1 || Math.max(...lost) > 0, 'the lost lock is counted')
  return taken
}

/** A worker that gets no core for two checks of stalled jobs cannot take its lock again in time. */
const TRIES = 3

test('a lost lock makes a worker read no other job, and hash its own once: alone, or beside another worker', async (t) => {
  for (const slots of [[1], [2], [1, 1]]) {
    const taken: number[] = []
    while (!taken.includes(1) && taken.length < TRIES) taken.push(await loseLock(t, slots))
    assert.ok(taken.includes(1), `${slots}: the job was taken ${taken.join(', ')} times`)
  }
})

test('a worker that got no core for a second and a half keeps its jobs, and another one takes none of them', async (t) => {
  const space = spaceFor(t, redisUrl)
  const [stopped, other] = await Promise.all([
    startedWorkerProcess(space, { WORKER_CONCURRENCY: '1' }),
    startedWorkerProcess(space, { WORKER_CONCURRENCY: '1' }),
  ])
  const client = await readyClient(space)
  const pending = await Promise.all([1, 2].map(() => client.submit('verify', lasting(4_000))))
  await until(async () => (await activeJobs(space)).length === 2)
  // Both locks have been renewed once, so their age is known to half a second.
  await until(async () => {
    const left = await Promise.all(pending.map(({ job }) => space.redis.pttl(lockKey(space.prefix, job.id))))
    return left.every((ms) => ms > 2_250)
  })
  stopped.signal('SIGSTOP')
  const stoppedAt = performance.now()
  await until(() => performance.now() - stoppedAt > 1_500)
  stopped.signal('SIGCONT')
  for (const job of pending) assert.deepEqual(await answerOf(job), { kind: 'match' })
  for (const worker of [stopped, other]) {
    await jobsAreCounted(worker, 'verify hashed 1')
    assert.deepEqual([await locksLost(worker), await stalled(worker)], [0, 0])
  }
})
