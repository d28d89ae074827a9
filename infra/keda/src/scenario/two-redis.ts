// Two independent Redis: workers are scaled by the jobs of both together, and by what is left when one of them is lost.
import assert from 'node:assert/strict'
import { installChart } from '../installation.ts'
import type { Steps } from './run.ts'
import { JOBS_PER_WORKER, noneFailed, queueAt, type Stage, SYNC_MS } from './stage.ts'

const ORDINARY_PER_SECOND = 2
const WORKERS = 4

export async function twoRedisSteps(stage: Stage, { step }: Steps): Promise<void> {
  const { accounts, traffic, queue, settled, stays, loginsSucceed, workers, environment } = stage
  const { kubectl, backends, redis, secondRedis, gatewayUrl } = environment
  const secondQueue = queueAt(secondRedis.address, backends.redisPassword)
  const queues = [queue, secondQueue]

  await step('from one Redis to two under traffic, no login fails', async () => {
    await installChart(kubectl, backends, gatewayUrl)
    await settled(1)
    const before = traffic.results.length
    traffic.setRate(ORDINARY_PER_SECOND)
    const addresses = [redis.address, secondRedis.address].join(',')
    await installChart(kubectl, backends, gatewayUrl, ['redis.mode=several', `redis.addresses={${addresses}}`])
    await stage.autoscalerSees()
    const results = traffic.results.slice(before)
    assert.ok(results.length > 0)
    noneFailed(results)
    await stage.trafficEnds()
    await settled(1)
    return `${results.length} logins`
  })

  await step('the jobs of both queues together scale out, exactly', async () => {
    await Promise.all(queues.map((one) => one.pause()))
    const logins = loginsSucceed(accounts.slice(0, WORKERS * JOBS_PER_WORKER), 'respond-async')
    logins.catch(() => undefined)
    await settled(WORKERS)
    await stays(WORKERS, 1.5 * SYNC_MS)
    const counts = await Promise.all(queues.map((one) => one.getJobCountByTypes('wait', 'prioritized')))
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      WORKERS * JOBS_PER_WORKER,
    )
    // Neither queue alone would have asked for as many.
    assert.ok(
      counts.every((count) => count > 0 && Math.ceil(count / JOBS_PER_WORKER) < WORKERS),
      `${counts} jobs`,
    )
    await Promise.all(queues.map((one) => one.resume()))
    await logins
    return `${counts.join(' + ')} jobs, ${WORKERS} workers`
  })

  await step('one of the two away: workers stay, and logins go on through the other', async () => {
    await settled(1, 180_000)
    const before = workers()
    const results = traffic.results.length
    traffic.setRate(ORDINARY_PER_SECOND)
    await secondRedis.stop()
    await stays(before.length, 3 * SYNC_MS)
    assert.deepEqual(workers(), before)
    await secondRedis.startAgain()
    await stage.autoscalerSees()
    await stage.trafficEnds()
    noneFailed(traffic.results.slice(results))
    return `${traffic.results.length - results} logins, the same processes, for ${(3 * SYNC_MS) / 1_000} s`
  })
  await secondQueue.close()
}
