// Asks one thing over and over at a steady rate, for how long it takes while something else goes on.
import { setTimeout as sleep } from 'node:timers/promises'
import { Latency } from '../../measure/latency.ts'

export interface Probe {
  /** Resolves when the last has been answered. */
  stop(): Promise<{ latency: Latency; failed: number }>
}

/** Starts at once, one at a time. Times are counted from when each was due, so that a slow one shows in those behind it. */
export function startProbe(send: () => Promise<boolean>, everyMs: number): Probe {
  const latency = new Latency()
  let failed = 0
  let stopped = false
  const over = (async () => {
    for (let dueMs = performance.now(); !stopped; dueMs += everyMs) {
      await sleep(Math.max(0, dueMs - performance.now()))
      const went = await send().catch(() => false)
      if (!went) failed++
      latency.record(performance.now() - dueMs)
    }
  })()
  return {
    async stop() {
      stopped = true
      await over
      return { latency, failed }
    },
  }
}
