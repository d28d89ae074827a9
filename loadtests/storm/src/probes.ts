// A probe asks another endpoint of the application at a constant rate, however slow the answers are (an open loop).
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiAnswer } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { quantile } from '@spillway/infra/rig/quantile'

export interface Asked {
  /** When it should have been asked, by `performance.now()`. */
  dueMs: number
  /**
   * From when it was due, so that requests that leave late, or wait for one another, do not look quick. What is lost counts as the whole
   * time limit.
   */
  tookMs: number
  isLost: boolean
}

interface ProbeOptions {
  name: string
  perSecond: number
  /** What has no good answer counts as so long. */
  timeoutMs: number
  ask(): Promise<ApiAnswer>
  /** What is open then is left out. */
  interrupted: AbortSignal
}

/** A probe works with any status of these: others would be an error page that is quicker than the endpoint. */
export const isWorking = (status: number): boolean => status >= 200 && status < 400

export class Probe {
  readonly asked: Asked[] = []
  /** When those are due that have no answer yet, the oldest first. */
  readonly open = new Set<number>()
  /** By how much requests left later than they were due: the doing of this program, not of the application. */
  readonly late: { dueMs: number; lateMs: number }[] = []
  readonly #options: ProbeOptions
  #loop: { stop(): Promise<void> } | undefined

  constructor(options: ProbeOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.name
  }

  /** Asks from now on, also after a stop. */
  start(): void {
    const { perSecond } = this.#options
    this.#loop = startLoop({ rateAt: () => perSecond, send: (dueMs) => this.#ask(dueMs) })
  }

  /** Resolves when the last is answered, or at once when it was interrupted. */
  async stop(): Promise<void> {
    await this.#loop?.stop()
  }

  async #ask(dueMs: number): Promise<void> {
    const { ask, timeoutMs, interrupted } = this.#options
    this.open.add(dueMs)
    this.late.push({ dueMs, lateMs: performance.now() - dueMs })
    const { status } = await ask()
    this.open.delete(dueMs)
    if (interrupted.aborted) return
    const isLost = !isWorking(status)
    const tookMs = isLost ? timeoutMs : Math.min(performance.now() - dueMs, timeoutMs)
    this.asked.push({ dueMs, tookMs, isLost })
  }
}

/** Resolves after so long, or when the signal fires. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

// The end of a storm: when the probes are as quick as they were before it.

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
