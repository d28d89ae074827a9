// Several of Spillway side by side that know nothing of each other: what they share is the machine and its servers.
import type { Part } from '../contender.ts'
import { type SpillwayOptions, type SpillwayRunning, startSpillway } from './start.ts'

/** The requests go to all of them, and so does what is asked of their processes; the depth is that of the first one. */
export async function startSystems(count: number, options: SpillwayOptions): Promise<SpillwayRunning> {
  const starts = await Promise.allSettled(Array.from({ length: count }, () => startSpillway(options)))
  const systems = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  const close = async () => {
    await Promise.all(systems.map((system) => system.close()))
  }
  const failure = starts.find((start) => start.status === 'rejected')
  const [first] = systems
  if (first === undefined || failure !== undefined) {
    await close()
    throw failure?.reason ?? new Error('there has to be one system at least')
  }
  return {
    ...first,
    urls: systems.flatMap(({ urls }) => urls),
    gatewayOps: systems.flatMap(({ gatewayOps }) => gatewayOps),
    workerOps: systems.flatMap(({ workerOps }) => workerOps),
    parts: systems.flatMap(({ parts }): readonly Part[] => parts),
    close,
  }
}
