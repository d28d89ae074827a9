// The end of a storm: when the probes are as quick as they were before it.
import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '@spillway/infra/rig/quantile'
import type { Asked, Probe } from '../../measure/probe.ts'

/** Resolves after so long, or when the signal fires. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

/**
 * A probe is calm after this time without an answer slower than twice its first p99, and NOISE_MS.
 */
const CALM_MS = 1_000
const TIMES_P99 = 2
export const NOISE_MS = 20
const LOOK_MS = 100

export interface StormTimes {
  /** When the first login began, and the last one ended, by `performance.now()`. */
  startMs: number
  endMs: number
}

/** Waits until all are calm, or for so long. Gives the times from the last login to each calm. */
export async function untilCalmAgain(
  probes: readonly Probe[],
  times: StormTimes,
  atMostMs: number,
  signal: AbortSignal,
): Promise<(number | undefined)[]> {
  const slowMs = probes.map(({ asked }) => slowFrom(asked.filter(({ dueMs }) => dueMs < times.startMs)))
  for (;;) {
    const nowMs = performance.now()
    const since = probes.map((probe, index) => disturbedUntil(probe, times.endMs, slowMs[index] ?? NOISE_MS, nowMs))
    const again = since.map((ms) => (nowMs - ms >= CALM_MS ? ms - times.endMs : undefined))
    const isOver = nowMs - times.endMs >= atMostMs
    if (!again.includes(undefined) || isOver || signal.aborted) return again
    await pause(LOOK_MS, signal)
  }
}

function slowFrom(before: readonly Asked[]): number {
  const tookMs = before.map(({ tookMs }) => tookMs)
  return Math.max(TIMES_P99 * (quantile(tookMs, 0.99) ?? 0), NOISE_MS)
}

/**
 * The due time of the last request that was slow, or is open for too long; else the storm's end.
 */
function disturbedUntil({ asked, open }: Probe, endMs: number, slowMs: number, nowMs: number): number {
  const slow = asked.filter(({ dueMs, tookMs, isLost }) => dueMs >= endMs && (isLost || tookMs > slowMs))
  const waiting = [...open].filter((dueMs) => nowMs - dueMs > slowMs)
  return Math.max(endMs, ...slow.map(({ dueMs }) => dueMs), ...waiting)
}
