// Idle, a spike, and idle again: workers come and go with the queue, and no login fails.
import assert from 'node:assert/strict'
import { until } from '@spillway/infra/processes/until'
import { readMetric } from '@spillway/infra/rig/api-client'
import { type EtaErrors, etaErrors } from '@spillway/infra/rig/quantile'
import { figures } from '../../../sizing/src/figures.ts'
import { CHART_LIMITS, type SpikeCost, spikeCost } from '../../../sizing/src/spike.ts'
import type { Steps } from '../steps.ts'
import {
  HASH_MS,
  JOBS_PER_WORKER,
  type LoginResult,
  MAX_REPLICAS,
  ORDINARY_PER_SECOND,
  type Stage,
  SYNC_MS,
  watchIdle,
} from './stage.ts'

/** Of what one worker does: the README's spike. */
export const USUAL_TIMES = 6
const WORKER_PER_SECOND = 1_000 / HASH_MS
const SPIKE_S = 45
const EMPTY_WITHIN_MS = 120_000
/** At p90, of ETAs told after all workers joined, without those that the spike's end changed. */
const ETA_ERROR_LIMIT = 0.25
/** How long after the end of the spike gateways still expect as many to come, and to overtake. */
const PAST_COUNTS_MS = 6_000
const ETAS_LEAST = 50
/** Jobs that tell a worker's pace. */
const ENOUGH_DONE = 10
const SLOT_MS = HASH_MS + figures.turnaroundMs
/** How far gateways may take a worker to be slower than it is. */
const PACE_ERROR_LIMIT = 0.25
/** As in the chart. */
const GATEWAY_OPS_PORT = 9_464
const WORKER_OPS_PORT = 9_465

/** Measurements: seconds from the start of the spike, unless another start is named. */
export interface MeasuredSpike {
  /** When it began, from the start of the timeline. */
  atS: number
  perSecond: number
  lengthS: number
  /** Until the first added worker was ready. */
  scaleS: number
  /** Jobs at the most. */
  deepest: number
  /** Until the queue was empty. */
  overAfterS: number
}

/** @param times what one worker does */
export async function spikeSteps(stage: Stage, steps: Steps, times: number): Promise<MeasuredSpike> {
  const { traffic, timeline, settled, stays, environment } = stage
  const { kubelet } = environment
  const perSecond = times * WORKER_PER_SECOND
  const spike: MeasuredSpike = { atS: 0, perSecond, lengthS: 0, scaleS: 0, deepest: 0, overAfterS: 0 }

  await steps.step('idle stays at the minimum', async () => {
    await settled(1)
    await stays(1, 2.5 * SYNC_MS)
    return '1 worker'
  })

  await steps.step('a spike scales out to what the formula says, and every login succeeds', async () => {
    traffic.setRate(ORDINARY_PER_SECOND)
    await until(() => traffic.results.length > 5, { what: 'the first logins' })
    const [only] = kubelet.pods('worker')
    const jobsDone = () => readMetric(`http://${only?.ip}:${WORKER_OPS_PORT}`, 'spillway_jobs_total', 'name="verify"')
    const isQuiet = watchIdle()
    const doneBefore = await jobsDone()
    spike.atS = timeline.now()
    const since = (): string => `${(timeline.now() - spike.atS).toFixed(1)} s`
    traffic.setRate(perSecond)
    await until(() => (timeline.latest()?.replicas ?? 0) > 1, {
      timeoutMs: 3 * SYNC_MS,
      what: 'a larger number of workers',
    })
    const decided = since()
    await until(() => kubelet.pods('worker').length > 1, { what: 'a second process' })
    const started = since()
    await until(() => (timeline.latest()?.ready ?? 0) > 1, { what: 'a second worker' })
    const ready = since()
    const done = (await jobsDone()) - doneBefore
    // The pace of the one worker on this machine, unless others joined before it told one.
    const slotMs = done < ENOUGH_DONE ? SLOT_MS : (1_000 * (timeline.now() - spike.atS)) / done
    const beganAtMs = performance.now()
    spike.scaleS = timeline.now() - spike.atS
    await settled(MAX_REPLICAS)
    const joining = { beganAtMs, endedAtMs: performance.now() }
    await until(() => timeline.now() > spike.atS + SPIKE_S, { timeoutMs: 60_000 })
    traffic.setRate(ORDINARY_PER_SECOND)
    const overAtMs = performance.now()
    spike.lengthS = timeline.now() - spike.atS
    await until(() => (timeline.latest()?.depth ?? 1) < 2, { timeoutMs: EMPTY_WITHIN_MS, what: 'an empty queue' })
    spike.overAfterS = timeline.now() - spike.atS
    const sentAway = traffic.results.filter((login) => login.sentAway > 0).length
    allAreIn(traffic.results)
    spike.deepest = Math.max(...timeline.samples.map(({ depth }) => depth))
    assert.ok(spike.deepest / JOBS_PER_WORKER > MAX_REPLICAS)
    // A gateway that gets no processor refuses logins, too: no line is to blame for them.
    const reasons = ['reason="predicted_wait"', 'reason="too_many_waiting"']
    const refusals = kubelet
      .pods('gateway')
      .map(({ ip }) => readMetric(`http://${ip}:${GATEWAY_OPS_PORT}`, 'spillway_refused_total', ...reasons))
    const refused = (await Promise.all(refusals)).reduce((sum, count) => sum + count, 0)
    const predicted = predictSpike(spike, (1 + PACE_ERROR_LIMIT) * slotMs).refused
    assert.ok(refused === 0 || predicted > 0, `the line refused ${refused}, and by the model nobody`)
    const told = traffic.results.flatMap(({ etas }) => etas)
    const { before, after } = etaErrors(told, [joining, { beganAtMs: overAtMs, endedAtMs: overAtMs + PAST_COUNTS_MS }])
    const wrong = ({ count, p90 }: EtaErrors) => `${count} by ${Math.round(p90 * 100)} %`
    const areRight = after.count > ETAS_LEAST && after.p90 <= ETA_ERROR_LIMIT
    assert.ok(areRight || !isQuiet(), `ETAs were wrong at p90: ${wrong(after)}`)
    const judged = areRight ? '' : ', which is not judged on a machine without idle time'
    return `${traffic.results.length} logins, ${sentAway} of them sent away for a while, ${refused} times for the line (${Math.round(predicted)} by the model); a hash ${done < ENOUGH_DONE ? 'is taken to need' : 'took'} ${Math.round(slotMs)} ms; decided after ${decided}, started after ${started}, ready after ${ready}; depth ${spike.deepest}; ETAs wrong at p90: before that ${wrong(before)}, after all ${wrong(after)}${judged}`
  })

  await steps.step('drained, it scales in without one failed login', async () => {
    await settled(1)
    const beforeClose = traffic.results.length
    await stage.trafficEnds()
    allAreIn(traffic.results)
    return `${beforeClose} logins by now, no failure`
  })
  return spike
}

/** Unlike in other steps, people may have been sent away before. */
function allAreIn(results: readonly LoginResult[]): void {
  const failed = results.filter(({ failure }) => failure !== undefined)
  assert.deepEqual(failed, [])
}

/**
 * The sizing guide's prediction, from the rates, the hash, and when the added workers were ready,
 * and nothing else that was measured.
 */
export function predictSpike({ perSecond, lengthS, scaleS }: MeasuredSpike, slotMs = SLOT_MS): SpikeCost {
  return spikeCost({
    perSecond: ORDINARY_PER_SECOND,
    spikePerSecond: perSecond,
    spikeS: lengthS,
    slotMs,
    slots: 1,
    laterSlots: MAX_REPLICAS,
    scaleS,
    limits: CHART_LIMITS,
  })
}
