// The scenario: each step is a promise of the chart's README, and fails when it is not kept.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { quantile } from '@spillway/infra/rig/quantile'
import type { Steps } from '../steps.ts'
import { chartSteps, upgradeSteps } from './chart.ts'
import { type MeasuredSpike, spikeSteps } from './spike.ts'
import {
  AUTOSCALER,
  JOBS_PER_WORKER,
  MAX_REPLICAS,
  noneFailed,
  ORDINARY_PER_SECOND,
  queueAt,
  SCALED_OBJECT,
  type Stage,
  SYNC_MS,
  watchIdle,
} from './stage.ts'
import { endingSteps, troubleSteps } from './trouble.ts'

type Run = (stage: Stage, steps: Steps, times: number) => Promise<MeasuredSpike | undefined>

/** The parts of the scenario, in their order. Parts that need other values install them. */
export const parts: readonly { name: string; run: Run }[] = [
  { name: 'chart', run: chartSteps },
  { name: 'spike', run: spikeSteps },
  { name: 'trouble', run: troubleSteps },
  { name: 'schedule', run: scheduleSteps },
  { name: 'upgrades', run: upgradeSteps },
  { name: 'several', run: severalRedisSteps },
  { name: 'ending', run: endingSteps },
]

// Two independent Redis servers: workers are scaled by the jobs of both together, and by the jobs of
// one when the other is lost.

const WORKERS = 4

async function severalRedisSteps(stage: Stage, steps: Steps): Promise<undefined> {
  const { accounts, traffic, queue, settled, stays, loginsSucceed, workers, environment } = stage
  const { api, install, redis, secondRedis } = environment
  const secondQueue = queueAt(secondRedis.url)
  const queues = [queue, secondQueue]

  await steps.step('from one Redis to two under traffic, no login fails', async () => {
    await install()
    await settled(1)
    const before = traffic.results.length
    traffic.setRate(ORDINARY_PER_SECOND)
    const addresses = [redis.address, secondRedis.address].join(',')
    await install('redis.mode=several', `redis.addresses={${addresses}}`)
    await stage.autoscalerSees()
    const results = traffic.results.slice(before)
    assert.ok(results.length > 0)
    noneFailed(results)
    await stage.trafficEnds()
    await settled(1)
    return `${results.length} logins`
  })

  await steps.step('the jobs of both queues together scale out, exactly', async () => {
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

  await steps.step('one of the two away: workers and logins stay, and the jobs of the other scale out', async () => {
    await settled(1)
    const before = workers()
    const results = traffic.results.length
    traffic.setRate(ORDINARY_PER_SECOND)
    await secondRedis.stop()
    await stays(before.length, 3 * SYNC_MS)
    assert.deepEqual(workers(), before)
    assert.equal(await api.conditionOf(SCALED_OBJECT, 'Fallback'), 'True')
    assert.equal(await api.conditionOf(AUTOSCALER, 'ScalingActive'), 'True')
    await stage.trafficEnds()
    noneFailed(traffic.results.slice(results))
    await queue.pause()
    const logins = loginsSucceed(accounts.slice(0, WORKERS * JOBS_PER_WORKER), 'respond-async')
    logins.catch(() => undefined)
    await settled(WORKERS)
    await queue.resume()
    await logins
    await secondRedis.startAgain()
    await stage.autoscalerSees()
    return `${traffic.results.length - results} logins by the same process for ${(3 * SYNC_MS) / 1_000} s, then ${WORKERS} workers`
  })
  await secondQueue.close()
}

// A known peak: the schedule's workers are there before the spike, so that no login gets a ticket,
// and go when it ends.

/** Three quarters of what eight workers take. */
const SPIKE_PER_SECOND = 24
const SPIKE_S = 20
const LONGEST_P99_MS = 1_000
const SCHEDULE_MINUTES = 4
const MINUTE_MS = 60_000

async function scheduleSteps(stage: Stage, steps: Steps): Promise<undefined> {
  const { traffic, timeline, settled, environment } = stage
  const schedule = scheduleFrom(new Date())

  await steps.step('a schedule brings its workers ahead of the spike, from zero', async () => {
    const values = { ...schedule, timezone: 'Etc/UTC', replicas: MAX_REPLICAS }
    const set = Object.entries(values).map(([name, value]) => `autoscaling.schedules[0].${name}=${value}`)
    const startedAt = timeline.now()
    await environment.install('autoscaling.minReplicas=0', ...set)
    await settled(MAX_REPLICAS)
    return `${MAX_REPLICAS} workers ${(timeline.now() - startedAt).toFixed(1)} s after the upgrade`
  })

  await steps.step('a spike inside the schedule gives no ticket', async () => {
    const before = traffic.results.length
    const startedAt = timeline.now()
    const isQuiet = watchIdle()
    traffic.setRate(SPIKE_PER_SECOND)
    await until(() => timeline.now() > startedAt + SPIKE_S, { timeoutMs: 2 * SPIKE_S * 1_000 })
    await stage.trafficEnds()
    const results = traffic.results.slice(before)
    noneFailed(results)
    const tickets = results.filter(({ hadTicket }) => hadTicket).length
    const tookMs = results.map(({ startedAt, endedAt }) => endedAt - startedAt)
    const p99Ms = quantile(tookMs, 0.99) ?? Number.POSITIVE_INFINITY
    const told = `${results.length} logins at ${SPIKE_PER_SECOND} a second, ${tickets} with a ticket, 99th percentile ${Math.round(p99Ms)} ms`
    const isKept = tickets === 0 && p99Ms < LONGEST_P99_MS
    assert.ok(isKept || !isQuiet(), told)
    return isKept ? told : `${told}, which is not judged on a machine without idle time`
  })

  await steps.step('the schedule over, its workers go, down to zero', async () => {
    await settled(0, (SCHEDULE_MINUTES + 3) * MINUTE_MS)
    return '0 workers'
  })
}

/** A schedule by the hour, in UTC, that has begun and ends in some minutes. */
function scheduleFrom(now: Date): { start: string; end: string } {
  const hourlyAt = (minute: number): string => `${minute % 60} * * * *`
  return { start: hourlyAt(now.getUTCMinutes()), end: hourlyAt(now.getUTCMinutes() + SCHEDULE_MINUTES) }
}
