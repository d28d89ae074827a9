/** The load as an application sees it: it knows the cost of its own calls, before a hash of that cost was ever made. */
import type { Load } from '../protocol/capacity.js'
import type { Tally } from '../protocol/work.js'

/** In milliseconds: hashes that take less say little of those that take more. */
const SAYS_LITTLE_MS = 1

/** @param own the calls that wait or are hashed; all others take as long as recent hashes */
export function withOwnWork(load: Load, own: Tally): Load {
  const { unitCosts, waiting, deferred, active } = load
  if (unitCosts === undefined || load.serviceMs === 0 || own.count === 0) return load
  const others = Math.max(0, waiting + deferred + active - own.count)
  const takenOfForetold = (load.serviceMs + SAYS_LITTLE_MS) / (unitCosts.foretoldMs + SAYS_LITTLE_MS)
  const ownMs = takenOfForetold * own.meanMs(unitCosts)
  const serviceMs = (own.count * ownMs + others * load.serviceMs) / (own.count + others)
  const dearer = serviceMs / load.serviceMs
  return {
    ...load,
    serviceMs,
    jobsPerSecond: load.jobsPerSecond / dearer,
    linePerSecond: load.linePerSecond / dearer,
  }
}
