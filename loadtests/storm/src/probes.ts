// A probe asks another endpoint of the application at a constant rate, however slow the answers are (an open loop).
import { startLoop } from '@spillway/local/rig/open-loop'
import type { Connections } from './ask.ts'
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

export interface ProbeOptions {
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
