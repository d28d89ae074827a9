// Several of Spillway side by side that know nothing of each other: what they share is the machine and its servers.
import { allOrNone } from '@spillway/local/processes/all-or-none'
import type { Part } from '../contender.ts'
import { type SpillwayOptions, type SpillwayRunning, startSpillway } from './start.ts'

/** The requests go to all of them, and so does what is asked of their processes; the depth is that of the first one. */
export async function startSystems(count: number, options: SpillwayOptions): Promise<SpillwayRunning> {
  const systems = await allOrNone(Array.from({ length: count }, () => startSpillway(options)))
  const [first] = systems
  if (first === undefined) throw new Error('there has to be one system at least')
  return {
    ...first,
    urls: systems.flatMap(({ urls }) => urls),
    gatewayOps: systems.flatMap(({ gatewayOps }) => gatewayOps),
    workerOps: systems.flatMap(({ workerOps }) => workerOps),
    parts: systems.flatMap(({ parts }): readonly Part[] => parts),
    close: async () => {
      await Promise.all(systems.map((system) => system.close()))
    },
  }
}
