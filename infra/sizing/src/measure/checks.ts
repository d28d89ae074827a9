// Waits and a spike on the real gateway, queue and worker, which the guide compares with the model.
import { quantile } from '@spillway/local/rig/quantile'
import type { SpikeCheck, WaitCheck } from '../figures.ts'
import { type JobTimes, logInAtRate, type MeasuredSystem } from './logins.ts'

/** Hashes that wait without using a processor, so that a machine with few of them can stand for many. */
export const STAND_IN_MS = 50
export const SLOTS = 4

const WAITS_S = 60

/** Accounts with such hashes. */
export function standIns(system: MeasuredSystem): Promise<string[]> {
  return system.accounts('stand-in', 500, `$spillway-wait$${STAND_IN_MS}$`)
}

/** Waits at several rates. */
export async function checkWaits(
  system: MeasuredSystem,
  emails: string[],
  turnaroundMs: number,
  say: (line: string) => void,
): Promise<WaitCheck[]> {
  const checks: WaitCheck[] = []
  for (const busy of [0.5, 0.75, 0.9]) {
    const meant = (busy * SLOTS * 1_000) / (STAND_IN_MS + turnaroundMs)
    const jobs = await logInAtRate(system, emails, { perSecond: () => meant, forS: WAITS_S })
    const station = { perSecond: jobs.length / WAITS_S, slotMs: STAND_IN_MS + turnaroundMs, slots: SLOTS }
    const waits = jobs.map(waitMs)
    const waitOf = (share: number) => quantile(waits, share) ?? Number.NaN
    const check = {
      ...station,
      logins: jobs.length,
      measuredMs: { p50: waitOf(0.5), p99: waitOf(0.99) },
    }
    say(`${meant.toFixed(1)}/s: ${JSON.stringify(check)}`)
    checks.push(check)
  }
  return checks
}

/** A spike of twice the capacity of the slots. */
export async function checkSpike(system: MeasuredSystem, emails: string[], turnaroundMs: number): Promise<SpikeCheck> {
  const capacity = (SLOTS * 1_000) / (STAND_IN_MS + turnaroundMs)
  const [spikeS, forS] = [10, 30]
  const startedAt = Date.now()
  const jobs = await logInAtRate(system, emails, {
    perSecond: (atS) => (atS < spikeS ? capacity * 2 : capacity / 4),
    forS,
  })
  const inSpike = jobs.filter(({ endedAt, serviceMs, queueWaitMs }) => {
    return endedAt - serviceMs - queueWaitMs < startedAt + spikeS * 1_000
  }).length
  const station = {
    perSecond: (jobs.length - inSpike) / (forS - spikeS),
    spikePerSecond: inSpike / spikeS,
    spikeS,
    slotMs: STAND_IN_MS + turnaroundMs,
    slots: SLOTS,
  }
  return {
    ...station,
    measured: {
      deepest: deepest(jobs),
      longestWaitS: Math.max(...jobs.map(waitMs)) / 1_000,
      overAfterS: overAfterS(jobs, startedAt),
    },
  }
}

/** From the login to the start of its hash. */
function waitMs({ queueWaitMs, serviceMs }: JobTimes): number {
  return queueWaitMs + Math.max(0, serviceMs - STAND_IN_MS)
}

/** The most jobs that waited at a time. */
function deepest(jobs: JobTimes[]): number {
  const changes = jobs.flatMap(({ endedAt, serviceMs, queueWaitMs }) => {
    return [
      { at: endedAt - serviceMs - queueWaitMs, by: 1 },
      { at: endedAt - STAND_IN_MS, by: -1 },
    ]
  })
  let depth = 0
  let most = 0
  for (const { by } of changes.sort((a, b) => a.at - b.at)) {
    depth += by
    most = Math.max(most, depth)
  }
  return most
}

/** When waits were ordinary again: the end of the last job that waited longer than four hashes. */
function overAfterS(jobs: JobTimes[], startedAt: number): number {
  const late = jobs.filter((job) => waitMs(job) > 4 * STAND_IN_MS)
  return (Math.max(...late.map(({ endedAt }) => endedAt)) - startedAt) / 1_000
}
