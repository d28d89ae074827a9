// Watches a contender from the outside while something happens to it: the latency of endpoints that have nothing to do with it.
import { createApiClient } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import type { Running } from '../contenders/contender.ts'

/** Of each bystander, per second: enough for a p99 in ten seconds, little enough to cost a hundredth of a core. */
const BYSTANDERS_PER_SECOND = 40

export async function observe<T>(running: Running, happening: () => Promise<T>) {
  const client = createApiClient(running.url)
  const neighbour = startProbe(BYSTANDERS_PER_SECOND, () => client.get(running.neighbourPath))
  const healthz = startProbe(BYSTANDERS_PER_SECOND, () => client.get('/healthz'))
  const stop = () => Promise.all([neighbour.stop(), healthz.stop()])
  try {
    const [before, startMs] = [process.cpuUsage(), performance.now()]
    const result = await happening()
    const { user, system } = process.cpuUsage(before)
    /** Per cent of a core that the generator, in this process, used. Near a hundred, the figures measure the generator. */
    const generatorPercent = (user + system) / 10 / (performance.now() - startMs)
    const [ofNeighbour, ofHealthz] = await stop()
    /** One endpoint that asks the file system, and one that asks nothing at all. */
    const bystanders = { neighbour: ofNeighbour.tookMs, healthz: ofHealthz.tookMs }
    return { result, generatorPercent, bystanders }
  } finally {
    await stop()
    client.close()
  }
}

// A probe sends one request at a steady rate, and measures how long it takes while something else runs.

/** Starts at once. A request fails by rejecting or by answering false. */
export function startProbe(perSecond: number, send: () => Promise<unknown>) {
  const tookMs: number[] = []
  let failed = 0
  const loop = startLoop({
    rateAt: () => perSecond,
    async send(dueMs) {
      const answer = await send().catch(() => false)
      if (answer === false) failed++
      tookMs.push(performance.now() - dueMs)
    },
  })
  return {
    /** Resolves when the last has been answered. */
    async stop() {
      await loop.stop()
      return { tookMs, failed }
    },
  }
}
