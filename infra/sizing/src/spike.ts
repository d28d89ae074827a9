// A spike, as a fluid: while more comes in than the slots can take, the rest piles up. Who can be answered while the request is
// held goes into the first lane, who cannot gets a ticket and goes into the second, which is served when the first is empty; who
// finds no room is told when to come back, and does. The gateway's admission has the same rules (api/src/admission.ts).
// What it leaves out: people who come back for their ticket in time are moved among those who are held.

export interface SpikeDemand {
  /** Logins a second before and after, and during. */
  perSecond: number
  spikePerSecond: number
  spikeS: number
  /** How long a login keeps a slot. */
  slotMs: number
  /** Slots at the start, and those there are once more have been added. */
  slots: number
  laterSlots: number
  /** How long that takes. */
  scaleS: number
  limits: AdmissionLimits
}

export interface AdmissionLimits {
  /** How long a request is held, and how long a ticket is good, in seconds. */
  loginWaitS: number
  ticketLifeS: number
  /** Jobs in the queue at most. */
  maxOutstanding: number
}

/** A gateway's, where nothing else is set: LOGIN_WAIT_MS, TICKET_TTL_MS, MAX_OUTSTANDING. */
export const DEFAULT_LIMITS: AdmissionLimits = { loginWaitS: 8, ticketLifeS: 60, maxOutstanding: 10_000 }

export interface SpikeCost {
  /** Jobs in the queue at its deepest. */
  deepest: number
  /** The longest wait of a job in the queue, in seconds. */
  longestWaitS: number
  /** Logins that are given a ticket at once, and those of them whose ticket expires before its turn. */
  ticketed: number
  expired: number
  /** Logins that are told to come back later. */
  refused: number
  /** Seconds from the start of the spike until nobody waits; Infinity when that never comes. */
  overAfterS: number
}

const STEP_S = 0.01
/** Beyond this it counts as never. */
const HORIZON_S = 3_600
const NEVER_S = Number.POSITIVE_INFINITY

/** What a spike does to those who log in. */
export function spikeCost(demand: SpikeDemand): SpikeCost {
  const { loginWaitS, ticketLifeS, maxOutstanding } = demand.limits
  const held = createLane()
  const deferred = createLane()
  const cost: SpikeCost = { deepest: 0, longestWaitS: 0, ticketed: 0, expired: 0, refused: 0, overAfterS: NEVER_S }
  let away = 0
  for (let step = 0; step * STEP_S < HORIZON_S; step += 1) {
    const atS = step * STEP_S
    const perSecond = ((atS < demand.scaleS ? demand.slots : demand.laterSlots) * 1_000) / demand.slotMs
    const arriving = (atS < demand.spikeS ? demand.spikePerSecond : demand.perSecond) * STEP_S

    const room = Math.max(0, Math.min(maxOutstanding, perSecond * ticketLifeS) - held.depth() - deferred.depth())
    const returning = Math.min(away, Math.max(0, room - arriving))
    const refused = Math.max(0, arriving - room)
    away += refused - returning
    cost.refused += refused
    const admitted = arriving - refused + returning
    const lane = held.depth() / perSecond <= loginWaitS ? held : deferred
    lane.add(admitted, atS)
    if (lane === deferred) cost.ticketed += admitted

    const left = held.serve(perSecond * STEP_S, atS)
    deferred.serve(left, atS)
    cost.expired += deferred.drop(atS - ticketLifeS)
    cost.deepest = Math.max(cost.deepest, held.depth() + deferred.depth())
    if (atS >= demand.spikeS && held.depth() + deferred.depth() + away === 0) {
      cost.overAfterS = atS
      break
    }
  }
  cost.longestWaitS = Math.max(held.longestWaitS(), deferred.longestWaitS())
  return cost
}

interface Lane {
  depth(): number
  longestWaitS(): number
  add(logins: number, atS: number): void
  /** Serves this many at most, first come first served, and gives how many more there could have been. */
  serve(logins: number, atS: number): number
  /** Drops those who came before this moment, and gives how many they were. */
  drop(beforeS: number): number
}

function createLane(): Lane {
  const waiting: { logins: number; atS: number }[] = []
  let first = 0
  let depth = 0
  let longestWaitS = 0
  /** What remains of rounding is nobody. */
  const settle = (): void => {
    if (first === waiting.length) depth = 0
  }
  return {
    depth: () => depth,
    longestWaitS: () => longestWaitS,
    add(logins, atS) {
      if (logins === 0) return
      waiting.push({ logins, atS })
      depth += logins
    },
    serve(logins, atS) {
      let left = logins
      for (let next = waiting[first]; next && left > 0; next = waiting[first]) {
        const served = Math.min(next.logins, left)
        longestWaitS = Math.max(longestWaitS, atS - next.atS)
        next.logins -= served
        left -= served
        depth -= served
        if (next.logins === 0) first += 1
      }
      settle()
      return left
    },
    drop(beforeS) {
      let dropped = 0
      for (let next = waiting[first]; next && next.atS < beforeS; next = waiting[first]) {
        dropped += next.logins
        depth -= next.logins
        first += 1
      }
      settle()
      return dropped
    },
  }
}
