// Watches a contender from the outside while something happens to it: the processor time of each process, and the latency of endpoints that
// have nothing to do with it.
import { memoryOf, processorTime, processorTimeOfTree } from '@spillway/infra/processes/processor-time'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import type { Part, Running } from '../contenders/contender.ts'
import { Latency } from './tally.ts'

/** Of each bystander, per second: enough for a p99 in ten seconds, little enough to cost a hundredth of a core. */
const BYSTANDERS_PER_SECOND = 40

/** Without bystanders, because their requests cost processor time too. */
export async function processorTimeOf<T>(
  running: Pick<Running, 'parts'>,
  servers: readonly Part[],
  happening: () => Promise<T>,
) {
  const watched = [...running.parts, ...servers]
  const before = watched.map(timeOfPart)
  const generator = process.cpuUsage()
  const startMs = performance.now()
  const result = await happening()
  // Read as soon as it is over: later work of a server is for callers that are gone.
  const seconds = (performance.now() - startMs) / 1_000
  const after = watched.map(timeOfPart)
  const used = process.cpuUsage(generator)
  const parts = watched.flatMap(({ role, pid, readyMs }, index) => {
    const start = before[index]
    const end = after[index]
    if (start === undefined || end === undefined) return []
    const time = { totalMs: end.totalMs - start.totalMs, eventLoopMs: end.eventLoopMs - start.eventLoopMs }
    const peakBytes = memoryOf(pid)?.peakBytes
    return [{ role, ...time, peakMb: peakBytes && peakBytes / 1e6, readyMs }]
  })
  return {
    result,
    seconds,
    /** Only processes that lived through it; the peak of their memory since they were started. */
    parts,
    /** Per cent of a core that the generator, in this process, used. Near a hundred, the figures measure the generator. */
    generatorPercent: (used.user + used.system) / 10_000 / seconds,
  }
}

/** @param servers the processes of PostgreSQL and Redis, which work for it as well */
export async function observe<T>(running: Running, servers: readonly Part[], happening: () => Promise<T>) {
  const client = createApiClient(running.url)
  const neighbour = startProbe(BYSTANDERS_PER_SECOND, () => client.get(running.neighbourPath))
  const healthz = startProbe(BYSTANDERS_PER_SECOND, () => client.get('/healthz'))
  const stop = () => Promise.all([neighbour.stop(), healthz.stop()])
  try {
    const observed = await processorTimeOf(running, servers, happening)
    const [ofNeighbour, ofHealthz] = await stop()
    /** One endpoint that asks the file system, and one that asks nothing at all. */
    const bystanders = { neighbour: ofNeighbour.latency, healthz: ofHealthz.latency }
    return { ...observed, bystanders }
  } finally {
    await stop()
    client.close()
  }
}

function timeOfPart(part: Part) {
  return part.withChildren ? processorTimeOfTree(part.pid) : processorTime(part.pid)
}

export type PartTime = Awaited<ReturnType<typeof processorTimeOf>>['parts'][number]

/** The processor time of all processes in a role, in milliseconds. */
export function timeOf(parts: readonly PartTime[], role?: string): number {
  return parts.reduce((sum, part) => (role === undefined || part.role === role ? sum + part.totalMs : sum), 0)
}

// A probe sends one request at a steady rate, and measures how long it takes while something else runs.

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
