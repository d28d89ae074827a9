// A known peak: the schedule's workers are there before the spike, so that no login gets a ticket, and go when it ends.
import assert from 'node:assert/strict'
import { until } from '@spillway/local/processes/until'
import { installChart } from '../installation.ts'
import { percentile99 } from '../timeline.ts'
import type { Steps } from './run.ts'
import { MAX_REPLICAS, noneFailed, type Stage } from './stage.ts'

/** Three quarters of what eight workers take. */
const SPIKE_PER_SECOND = 24
const SPIKE_S = 20
const LONGEST_P99_MS = 1_000
const SCHEDULE_MINUTES = 4
const MINUTE_MS = 60_000

export async function scheduleSteps(stage: Stage, { step }: Steps): Promise<void> {
  const { traffic, timeline, settled, environment } = stage
  const { kubectl, backends, gatewayUrl } = environment
  const schedule = scheduleFrom(new Date())

  await step('a schedule brings its workers ahead of the spike, from zero', async () => {
    const values = { ...schedule, timezone: 'Etc/UTC', replicas: MAX_REPLICAS }
    const set = Object.entries(values).map(([name, value]) => `autoscaling.schedules[0].${name}=${value}`)
    const startedAt = timeline.now()
    await installChart(kubectl, backends, gatewayUrl, ['autoscaling.minReplicas=0', ...set])
    await settled(MAX_REPLICAS)
    return `${MAX_REPLICAS} workers ${(timeline.now() - startedAt).toFixed(1)} s after the upgrade`
  })

  await step('a spike inside the schedule gives no ticket', async () => {
    const before = traffic.results.length
    const startedAt = timeline.now()
    traffic.setRate(SPIKE_PER_SECOND)
    await until(() => timeline.now() > startedAt + SPIKE_S, { timeoutMs: 2 * SPIKE_S * 1_000 })
    await stage.trafficEnds()
    const results = traffic.results.slice(before)
    noneFailed(results)
    assert.equal(results.filter(({ hadTicket }) => hadTicket).length, 0)
    const p99Ms = percentile99(results) ?? Number.POSITIVE_INFINITY
    assert.ok(p99Ms < LONGEST_P99_MS, `the 99th percentile of a login is ${Math.round(p99Ms)} ms`)
    return `${results.length} logins at ${SPIKE_PER_SECOND} a second without a ticket, 99th percentile ${Math.round(p99Ms)} ms`
  })

  await step('the schedule over, its workers go, down to zero', async () => {
    await settled(0, (SCHEDULE_MINUTES + 3) * MINUTE_MS)
    return '0 workers'
  })
}

/** A schedule by the hour, in UTC, that has begun and ends in some minutes. */
function scheduleFrom(now: Date): { start: string; end: string } {
  const hourlyAt = (minute: number): string => `${minute % 60} * * * *`
  return { start: hourlyAt(now.getUTCMinutes()), end: hourlyAt(now.getUTCMinutes() + SCHEDULE_MINUTES) }
}
