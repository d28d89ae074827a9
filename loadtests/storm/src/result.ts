// What a storm measured, as it is written to JSON: figures and names, nothing of requests.
import { quantile } from '@spillway/infra/rig/quantile'
import type { Asked, Probe } from '../../measure/probe.ts'

/**
 * How a login ends: as expected; refused with a time to come back (202, 429 or 503 with
 * Retry-After); lost, without an answer; otherwise.
 */
type Outcome = 'success' | 'refused' | 'lost' | 'other'

export interface Login {
  /** By `performance.now()`. */
  startMs: number
  tookMs: number
  outcome: Outcome
  /** What ended it: a status, or the failure. */
  why: string
}

export interface StormTimes {
  /** When the first login began, and the last one ended, by `performance.now()`. */
  startMs: number
  endMs: number
}

/** @param stormS how long logins began */
export function loginFigures(
  logins: readonly Login[],
  { startMs, stormS, timeoutMs }: { startMs: number; stormS: number; timeoutMs: number },
) {
  const counts: Record<Outcome, number> = { success: 0, refused: 0, lost: 0, other: 0 }
  /** What ended those that did not succeed: a status or a failure, and how often. */
  const reasons: Record<string, number> = {}
  for (const { outcome, why } of logins) {
    counts[outcome]++
    if (outcome !== 'success') reasons[why] = (reasons[why] ?? 0) + 1
  }
  const inTime = logins.filter(
    ({ outcome, startMs: from, tookMs }) => outcome === 'success' && from + tookMs <= startMs + stormS * 1_000,
  )
  const took = logins.flatMap(({ outcome, tookMs }) =>
    outcome === 'lost' ? [timeoutMs] : outcome === 'success' ? [tookMs] : [],
  )
  return {
    ...counts,
    /** Successes by the end of the time in which logins began. */
    perSecond: stormS > 0 ? inTime.length / stormS : 0,
    /** From beginning to end, of those that succeeded, and of lost ones with the whole time limit. */
    p50Ms: quantile(took, 0.5),
    p99Ms: quantile(took, 0.99),
    reasons,
  }
}

const INTERVAL_MS = 200

export function probeResult(asked: readonly Asked[], { startMs, endMs }: StormTimes) {
  const due = (fromMs: number, toMs: number) => asked.filter(({ dueMs }) => dueMs >= fromMs && dueMs < toMs)
  const slowest = new Map<number, number>()
  for (const { dueMs, tookMs } of asked) {
    const interval = Math.floor((dueMs - startMs) / INTERVAL_MS)
    slowest.set(interval, Math.max(slowest.get(interval) ?? 0, tookMs))
  }
  return {
    calm: phaseFigures(due(Number.NEGATIVE_INFINITY, startMs)),
    storm: phaseFigures(due(startMs, endMs)),
    after: phaseFigures(due(endMs, Number.POSITIVE_INFINITY)),
    /** The slowest answer to what was due in each interval, in seconds from the first login. */
    slowest: [...slowest]
      .sort(([a], [b]) => a - b)
      .map(([interval, ms]) => ({ second: (interval * INTERVAL_MS) / 1_000, ms })),
  }
}

export type PhaseFigures = ReturnType<typeof phaseFigures>

function phaseFigures(asked: readonly Asked[]) {
  const took = asked.map(({ tookMs }) => tookMs)
  return {
    asked: asked.length,
    /** Without a good answer. They count as the whole time limit below. */
    lost: asked.filter(({ isLost }) => isLost).length,
    p50Ms: quantile(took, 0.5),
    p99Ms: quantile(took, 0.99),
    maxMs: quantile(took, 1),
  }
}

/**
 * The load of this program: where it is busy or late, the other figures include its delay.
 *
 * @param used what `process.cpuUsage` says of the storm
 */
export function generatorOf(probes: readonly Probe[], { startMs, endMs }: StormTimes, used: NodeJS.CpuUsage) {
  const late = probes.flatMap(({ late }) => late).filter(({ dueMs }) => dueMs >= startMs && dueMs < endMs)
  const lateMs = late.map(({ lateMs }) => lateMs)
  return {
    /** Per cent of a core that it used during the storm. */
    corePercent: (used.user + used.system) / 10 / Math.max(endMs - startMs, 1),
    lateP99Ms: quantile(lateMs, 0.99),
  }
}
