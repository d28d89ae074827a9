/** The load of several Redis servers together: jobs add up, and a worker that takes from several counts once. */
import { createLineCapacity } from '../passwords/line-capacity.js'
import { type Load, sumCapacity, type WorkerCapacity } from '../protocol/capacity.js'

export interface ShardLoad {
  load(): Load
  /** A new map at each reading. */
  workers(): ReadonlyMap<string, WorkerCapacity>
}

/** Returns how to add up the load of those that are known; the sum of capacities is kept until one of them is read anew. */
export function createSharedLoad(shards: readonly ShardLoad[]): () => Load {
  const line = createLineCapacity()
  let summed: { of: ReadonlyMap<string, WorkerCapacity>[]; capacity: ReturnType<typeof sumCapacity> } | undefined

  return () => {
    const known = shards
      .map((shard) => ({ load: shard.load(), workers: shard.workers() }))
      .filter(({ load }) => load.known)
    const of = known.map(({ workers }) => workers)
    const isSame = summed !== undefined && of.length === summed.of.length && of.every((map, n) => map === summed?.of[n])
    if (!isSame || summed === undefined) summed = { of, capacity: sumCapacity(new Map(of.flatMap((map) => [...map]))) }
    line.observe(summed.capacity.linePerSecond)
    const sum = (part: 'waiting' | 'deferred' | 'active' | 'absent' | 'aheadOfKnown') =>
      known.reduce((total, { load }) => total + load[part], 0)
    return {
      known: known.length > 0,
      ...{ waiting: sum('waiting'), deferred: sum('deferred'), active: sum('active'), absent: sum('absent') },
      aheadOfKnown: sum('aheadOfKnown'),
      ...summed.capacity,
      linePerSecond: line.current(),
    }
  }
}
