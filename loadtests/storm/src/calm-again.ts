// The end of a storm: when the probes are as quick as they were before it.
import { quantile } from '@spillway/local/rig/quantile'
import { pause } from './ask.ts'
import type { Asked, Probe } from './probes.ts'

/** A probe is calm after a second in which no answer was slower than twice its p99 before the storm, or than so much: less is noise. */
const CALM_MS = 1_000
const TIMES_P99 = 2
export const NOISE_MS = 20
const LOOK_MS = 100

export interface StormTimes {
  /** When the first login began, and the last one ended, by `performance.now()`. */
  startMs: number
  endMs: number
}

/**
 * Waits until all are calm, or for at most so long.
 *
 * @returns for each how long after the last login its calm began; undefined where it did not
 */
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

/** When the last request was due that was slow, or is slow already and still open; otherwise the end of the storm. */
function disturbedUntil({ asked, open }: Probe, endMs: number, slowMs: number, nowMs: number): number {
  const slow = asked.filter(({ dueMs, tookMs, isLost }) => dueMs >= endMs && (isLost || tookMs > slowMs))
  const waiting = [...open].filter((dueMs) => nowMs - dueMs > slowMs)
  return Math.max(endMs, ...slow.map(({ dueMs }) => dueMs), ...waiting)
}
