// A probe asks one thing over and over at a steady rate, for how long it takes while something else goes on.
import { startLoop } from '@spillway/local/rig/open-loop'
import { Latency } from './latency.ts'

/** Starts at once. A request fails by rejecting or by answering false. */
export function startProbe(perSecond: number, send: () => Promise<unknown>) {
  const latency = new Latency()
  let failed = 0
  const loop = startLoop({
    rateAt: () => perSecond,
    async send(dueMs) {
      const answer = await send().catch(() => false)
      if (answer === false) failed++
      latency.record(performance.now() - dueMs)
    },
  })
  return {
    /** Resolves when the last has been answered. */
    async stop() {
      await loop.stop()
      return { latency, failed }
    },
  }
}
