// A spike, as a fluid: while more comes in than the slots can take, the rest piles up, and who comes then waits for all of it.

export interface SpikeDemand {
  /** Logins a second before and after, and during. */
  perSecond: number
  spikePerSecond: number
  spikeS: number
  serviceMs: number
  /** Slots at the start, and those there are once more have been added. */
  slots: number
  laterSlots: number
  /** How long that takes. */
  scaleS: number
}

export interface SpikeCost {
  /** Jobs in the queue at its deepest. */
  deepest: number
  /** The longest wait, in seconds. */
  longestWaitS: number
  /** Seconds from the start of the spike until nobody waits; Infinity when that never comes. */
  overAfterS: number
}

const STEP_S = 0.01
/** Beyond this it counts as never. */
const HORIZON_S = 24 * 3_600

export function spikeCost(demand: SpikeDemand): SpikeCost {
  const capacity = (atS: number): number =>
    ((atS < demand.scaleS ? demand.slots : demand.laterSlots) * 1_000) / demand.serviceMs
  const cost: SpikeCost = { deepest: 0, longestWaitS: 0, overAfterS: 0 }
  let depth = 0
  for (let atS = 0; atS < HORIZON_S; atS += STEP_S) {
    const arrivals = atS < demand.spikeS ? demand.spikePerSecond : demand.perSecond
    depth = Math.max(0, depth + (arrivals - capacity(atS)) * STEP_S)
    cost.deepest = Math.max(cost.deepest, depth)
    cost.longestWaitS = Math.max(cost.longestWaitS, waitOf(depth, atS))
    if (depth === 0 && atS >= demand.spikeS) return { ...cost, overAfterS: atS }
  }
  return { ...cost, overAfterS: Number.POSITIVE_INFINITY }

  /** The wait of who comes now: the queue ahead, by the slots there are, and from when they are there by those added. */
  function waitOf(ahead: number, atS: number): number {
    const beforeS = Math.max(0, demand.scaleS - atS)
    const done = beforeS * capacity(atS)
    return done >= ahead ? ahead / capacity(atS) : beforeS + (ahead - done) / capacity(demand.scaleS)
  }
}
