// Simulates a spike in small steps. The gateway's own admission and prediction decide on each
// login. Arrivals and service are even: a spike far exceeds the capacity of the slots.

import { GatewayConfig } from '@spillway/api/config'
import { PROMOTED_BY_EACH } from '@spillway/queue/jobs/lanes'
import { Admission, type Admitted } from '@spillway/queue/wait/admission'
import { LoadState } from '@spillway/queue/wait/load-state'
import { sumCapacity, type TotalCapacity } from '@spillway/queue/wire/capacity'

export interface Station {
  perSecond: number
  /** How long a login keeps a slot: the hash, and the time between two hashes. */
  slotMs: number
  slots: number
}

/** The station is that before the spike. */
interface SpikeDemand extends Station {
  /** Logins a second during it; afterwards they are as before. */
  spikePerSecond: number
  spikeS: number
  /** Slots once more have been added. */
  laterSlots: number
  scaleS: number
  limits: GatewayLimits
}

interface GatewayLimits {
  maxOutstanding: number
  ticketTtlMs: number
  loginWaitMs: number
}

const { LOGIN_WAIT_MS, TICKET_TTL_MS, MAX_OUTSTANDING } = GatewayConfig.properties

const DEFAULT_LIMITS: GatewayLimits = {
  loginWaitMs: LOGIN_WAIT_MS.default,
  ticketTtlMs: TICKET_TTL_MS.default,
  maxOutstanding: MAX_OUTSTANDING.default,
}

/** The limits of a gateway in the chart: its line must last until added workers hash. */
export const CHART_LIMITS: GatewayLimits = { ...DEFAULT_LIMITS, ticketTtlMs: 600_000 }

export interface SpikeCost {
  deepest: number
  longestWaitS: number
  ticketed: number
  refused: number
  /** Seconds from the start of the spike until no login waits; Infinity if that never comes. */
  overAfterS: number
}

const STEP_S = 0.01
/** Beyond this it counts as never. */
const HORIZON_S = 3_600
/** In a larger spike several logins are simulated as one, so that it takes no longer. */
const SIMULATED_PER_SECOND = 1_000

/** The cost of a spike to its logins. Refused clients come back as soon as there is room. */
export function spikeCost(demand: SpikeDemand): SpikeCost {
  const { slotMs, spikeS, limits } = demand
  const crowd = Math.max(1, demand.spikePerSecond / SIMULATED_PER_SECOND)
  let nowS = 0
  const load = new LoadState(() => nowS * 1_000)
  const admission = new Admission({
    ...{ load: () => load.current(), predictedWaitMs: (lane) => load.predictedWaitMs(lane), now: () => nowS * 1_000 },
    ...{ maxOutstanding: limits.maxOutstanding / crowd, lifeMs: limits.ticketTtlMs },
  })
  const held: number[] = []
  const deferred: number[] = []
  const next = { held: 0, deferred: 0 }
  const depth = (): number => held.length - next.held + deferred.length - next.deferred
  const cost: SpikeCost = { deepest: 0, longestWaitS: 0, ticketed: 0, refused: 0, overAfterS: Number.POSITIVE_INFINITY }
  const [before, later] = [capacityOf(demand.slots, slotMs), capacityOf(demand.laterSlots, slotMs)]
  let due = 0
  let served = 0
  let away = 0

  function arrive(): boolean {
    const admitted = admit()
    if (admitted === undefined) return false
    if (admitted.waitMs === 0) cost.ticketed += crowd
    load.added(admitted.lane)
    if (admitted.lane === 'deferred') {
      deferred.push(nowS)
      return true
    }
    const promoted = deferred.slice(next.deferred, next.deferred + PROMOTED_BY_EACH)
    next.deferred += promoted.length
    held.push(nowS, ...promoted)
    return true
  }

  function admit(): Admitted | undefined {
    const admitted = admission.admit(limits.loginWaitMs, false)
    return 'reason' in admitted ? undefined : admitted
  }

  for (let step = 0; step * STEP_S < HORIZON_S; step += 1) {
    nowS = step * STEP_S
    const capacity = nowS < demand.scaleS ? before : later
    const jobsPerSecond = capacity.jobsPerSecond / crowd
    due += ((nowS < spikeS ? demand.spikePerSecond : demand.perSecond) * STEP_S) / crowd
    const waiting = held.length - next.held
    const queue = {
      waiting,
      deferred: deferred.length - next.deferred,
      active: 0,
      absent: 0,
      returned: 0,
      aheadOfKnown: waiting,
    }
    load.reading().succeeded(queue, { ...capacity, jobsPerSecond, linePerSecond: jobsPerSecond })
    while (due >= 1 && arrive()) due -= 1
    const refused = Math.floor(due)
    due -= refused
    cost.refused += refused * crowd
    if (refused > 0) away += refused
    else while (away > 0 && arrive()) away -= 1
    // Slots that find nothing to do cannot make up for it later.
    served = Math.min(served + jobsPerSecond * STEP_S, depth() + 1)
    for (; served >= 1 && depth() > 0; served -= 1) {
      const came = next.held < held.length ? held[next.held++] : deferred[next.deferred++]
      cost.longestWaitS = Math.max(cost.longestWaitS, nowS - (came ?? nowS))
    }
    cost.deepest = Math.max(cost.deepest, depth() * crowd)
    if (nowS >= spikeS && depth() + away === 0) return { ...cost, overAfterS: nowS }
  }
  return cost
}

/** As a gateway adds it up of what workers publish: here one with all the slots. */
function capacityOf(slots: number, slotMs: number): TotalCapacity {
  const finished = { answered: 0, expired: 0, failed: 0 }
  const unitCosts = { argon2Ms: 1, bcryptMs: 1, foretoldMs: slotMs }
  const times = { serviceMs: slotMs, lineMs: slotMs, latencyMs: slotMs, unitCosts, at: 0 }
  const entry = { slots, ...times, name: 'all', fallback: false, keys: '', busy: 0, asking: 0, finished }
  return sumCapacity(new Map([['all', entry]]))
}
