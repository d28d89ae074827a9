// A probe asks another endpoint of the application at a constant rate, however slow the answers are (an open loop).
import { startLoop } from '@spillway/infra/rig/open-loop'
import { quantile } from '@spillway/infra/rig/quantile'
import { type Connections, pause } from './ask.ts'
import { type HttpRequest, nameOf } from './request.ts'

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

export interface Probe {
  name: string
  asked: readonly Asked[]
  /** When those are due that have no answer yet, the oldest first. */
  open: ReadonlySet<number>
  /** By how much requests left later than they were due, in the order of `dueMs`: the doing of this program, not of the application. */
  late: readonly { dueMs: number; lateMs: number }[]
  /** Asks no more until it is resumed; resolves when the last is answered, or at once when it was interrupted. */
  stop(): Promise<void>
  /** Asks from now on. What would have been due since it was stopped is left out. */
  resume(): void
}

interface ProbeOptions {
  perSecond: number
  timeoutMs: number
  connections: Connections
  /** What is open is left out. */
  interrupted: AbortSignal
}

/** A probe works with any status of these: others would be an error page that is quicker than the endpoint. */
export const isWorking = (status: number | undefined): boolean => status !== undefined && status >= 200 && status < 400

export function startProbe(request: HttpRequest, options: ProbeOptions): Probe {
  const { perSecond, timeoutMs, connections, interrupted } = options
  const asked: Asked[] = []
  const late: { dueMs: number; lateMs: number }[] = []
  const open = new Set<number>()

  async function ask(dueMs: number): Promise<void> {
    open.add(dueMs)
    late.push({ dueMs, lateMs: performance.now() - dueMs })
    const { status } = await connections.ask(request)
    open.delete(dueMs)
    if (interrupted.aborted) return
    const isLost = !isWorking(status)
    asked.push({ dueMs, tookMs: isLost ? timeoutMs : Math.min(performance.now() - dueMs, timeoutMs), isLost })
  }

  const start = () => startLoop({ rateAt: () => perSecond, send: ask })
  let loop = start()
  return {
    name: nameOf(request),
    asked,
    open,
    late,
    stop: () => loop.stop(),
    resume() {
      loop = start()
    },
  }
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
