// Idle, a spike, and back: how workers come and go with the queue, and that no login fails over it.
import assert from 'node:assert/strict'
import { until } from '@spillway/local/processes/until'
import type { Steps } from '../steps.ts'
import { JOBS_PER_WORKER, MAX_REPLICAS, type Stage, SYNC_MS } from './stage.ts'

export const ORDINARY_PER_SECOND = 2
export const SPIKE_PER_SECOND = 24
const SPIKE_S = 45

/** What was measured. All but the first in seconds from the start of the spike, where not said otherwise. */
export interface MeasuredSpike {
  /** When it began, and when the workers were few again, by the timeline. */
  atS: number
  endS: number
  lengthS: number
  /** Until the first added worker was ready. */
  scaleS: number
  /** Jobs at the most. */
  deepest: number
  /** Until the queue was empty. */
  overAfterS: number
}

export async function showSpike(stage: Stage, { step }: Steps): Promise<MeasuredSpike> {
  const { traffic, timeline, settled, stays, noFailures, environment } = stage
  const { kubelet } = environment
  const spike: MeasuredSpike = { atS: 0, endS: 0, lengthS: 0, scaleS: 0, deepest: 0, overAfterS: 0 }

  await step('idle stays at the minimum', async () => {
    await settled(1)
    await stays(1, 2.5 * SYNC_MS)
    return '1 worker'
  })

  await step('a spike scales out to what the formula says, and every login succeeds', async () => {
    traffic.setRate(ORDINARY_PER_SECOND)
    await until(() => traffic.results.length > 5, { what: 'the first logins' })
    spike.atS = timeline.now()
    timeline.mark('spike')
    const since = (): string => `${(timeline.now() - spike.atS).toFixed(1)} s`
    traffic.setRate(SPIKE_PER_SECOND)
    await until(() => (timeline.latest()?.replicas ?? 0) > 1, {
      timeoutMs: 3 * SYNC_MS,
      what: 'a larger number of workers',
    })
    const decided = since()
    timeline.mark('decided')
    await until(() => kubelet.pods('worker').length > 1, { timeoutMs: 10_000, what: 'a second process' })
    const started = since()
    await until(() => (timeline.latest()?.ready ?? 0) > 1, { timeoutMs: 30_000, what: 'a second worker' })
    const ready = since()
    timeline.mark('first added slot')
    spike.scaleS = timeline.now() - spike.atS
    await settled(MAX_REPLICAS)
    await until(() => timeline.now() > spike.atS + SPIKE_S, { timeoutMs: 60_000 })
    traffic.setRate(ORDINARY_PER_SECOND)
    timeline.mark('spike over')
    spike.lengthS = timeline.now() - spike.atS
    await until(() => (timeline.latest()?.depth ?? 1) < 2, { timeoutMs: 60_000, what: 'an empty queue' })
    spike.overAfterS = timeline.now() - spike.atS
    noFailures()
    spike.deepest = Math.max(...timeline.samples.map(({ depth }) => depth))
    assert.ok(spike.deepest / JOBS_PER_WORKER > MAX_REPLICAS)
    return `${traffic.results.length} logins; decided after ${decided}, started after ${started}, ready after ${ready}; depth ${spike.deepest}`
  })

  await step('drained, it scales in without one failed login', async () => {
    await settled(1, 180_000)
    const beforeClose = traffic.results.length
    traffic.setRate(0)
    await until(() => traffic.inFlight() === 0, { timeoutMs: 30_000, what: 'the last logins' })
    noFailures()
    return `${beforeClose} logins by now, none failed`
  })
  // The last one's going is to be in the picture, too.
  spike.endS = timeline.now() + 3
  await until(() => timeline.now() > spike.endS)
  return spike
}
