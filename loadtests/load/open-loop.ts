// Load. In an open loop requests leave when they are due, however slow the answers are. A closed
// loop sends no more than it has callers free, and so slows down together with the server.
import { setTimeout as sleep } from 'node:timers/promises'

interface OpenLoop {
  rateAt(elapsedMs: number): number
  durationMs?: number
  /** Ends the arrivals early; what was sent is still waited for. */
  signal?: AbortSignal
  /**
   * Sends one request and handles its end; must not reject.
   * @param dueMs when it should have left, by `performance.now()`. Latency is counted from here, so
   *   that a generator which falls behind shows as latency instead of hiding it.
   */
  send(dueMs: number): Promise<void>
}

/** The generator's period: no request leaves later than this, if the event loop is free. */
const TICK_MS = 2

/** Resolves with the number of requests when the last has ended. */
export async function openLoop(loop: OpenLoop): Promise<number> {
  const { rateAt, durationMs = Number.POSITIVE_INFINITY, signal, send } = loop
  const startMs = performance.now()
  const open = new Set<Promise<void>>()
  let lastMs = 0
  let owed = 0
  let sent = 0

  function sendDue(): void {
    const nowMs = Math.min(performance.now() - startMs, durationMs)
    const sinceMs = nowMs - lastMs
    const arriving = (rateAt((lastMs + nowMs) / 2) * sinceMs) / 1_000
    // Spread over the time since the last look: one each time the sum passes a whole number.
    for (let next = 1; next <= owed + arriving; next++) {
      const dueMs = startMs + lastMs + ((next - owed) / arriving) * sinceMs
      const request = send(dueMs).finally(() => open.delete(request))
      open.add(request)
      sent++
    }
    owed = (owed + arriving) % 1
    lastMs = nowMs
  }

  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      sendDue()
      if (lastMs >= durationMs || signal?.aborted) {
        clearInterval(timer)
        resolve()
      }
    }, TICK_MS)
  })
  await Promise.all(open)
  return sent
}

export function startLoop(perSecond: number, send: (dueMs: number) => Promise<void>): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const over = openLoop({ rateAt: () => perSecond, send, signal: stopping.signal })
  return {
    async stop() {
      stopping.abort()
      await over
    },
  }
}

interface ClosedLoop {
  callers: number
  /** They arrive one after the other over this time [at once]. */
  arriveMs?: number
  isOver(): boolean
  /** One turn of a caller; must not reject. */
  call(caller: number): Promise<unknown>
}

/** Callers begin anew when answered. Resolves after it is over, with the last answer. */
export async function closedLoop({ callers, arriveMs = 0, isOver, call }: ClosedLoop): Promise<void> {
  const turns = async (caller: number) => {
    if (arriveMs > 0) await sleep((caller / callers) * arriveMs)
    while (!isOver()) await call(caller)
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => turns(caller)))
}
