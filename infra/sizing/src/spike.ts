// A spike, as a fluid: while more comes in than the slots can take, the rest piles up. The rules are those of the gateway's
// admission (api/src/waiting/admission.ts): newcomers overtake while few others have just done so, and each brings the one along who has
// waited longest; who cannot be answered while the request is held gets a ticket; who finds no room is told when to come back,
// and does.
import { createLane } from './lane.ts'

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
  /** Logins that are given a ticket at once. */
  ticketed: number
  /** Logins that are told to come back later. */
  refused: number
  /** Seconds from the start of the spike until nobody waits; Infinity when that never comes. */
  overAfterS: number
}

const STEP_S = 0.01
/** As in the gateway's admission. */
const OVERTAKING_S = 1
const TICKETED_SHARE = 0.45
/** Beyond this it counts as never. */
const HORIZON_S = 3_600

/** What a spike does to those who log in. */
export function spikeCost(demand: SpikeDemand): SpikeCost {
  const { loginWaitS, ticketLifeS, maxOutstanding } = demand.limits
  const held = createLane()
  const deferred = createLane()
  const depth = (): number => held.depth() + deferred.depth()
  const cost: SpikeCost = { deepest: 0, longestWaitS: 0, ticketed: 0, refused: 0, overAfterS: Number.POSITIVE_INFINITY }
  let away = 0
  for (let step = 0; step * STEP_S < HORIZON_S; step += 1) {
    const atS = step * STEP_S
    const perSecond = ((atS < demand.scaleS ? demand.slots : demand.laterSlots) * 1_000) / demand.slotMs
    const arriving = (atS < demand.spikeS ? demand.spikePerSecond : demand.perSecond) * STEP_S

    const room = Math.max(0, Math.min(maxOutstanding, perSecond * ticketLifeS * TICKETED_SHARE) - depth())
    const returning = Math.min(away, Math.max(0, room - arriving))
    const refused = Math.max(0, arriving - room)
    away += refused - returning
    cost.refused += refused
    const admitted = arriving - refused + returning
    const overtakes = held.depth() / perSecond <= OVERTAKING_S
    if ((overtakes ? held.depth() : depth()) / perSecond > loginWaitS) cost.ticketed += admitted
    if (overtakes) {
      held.add(admitted, atS)
      deferred.moveTo(held, admitted)
    } else deferred.add(admitted, atS)

    const left = held.serve(perSecond * STEP_S, atS)
    deferred.serve(left, atS)
    cost.deepest = Math.max(cost.deepest, depth())
    if (atS >= demand.spikeS && depth() + away === 0) {
      cost.overAfterS = atS
      break
    }
  }
  cost.longestWaitS = Math.max(held.longestWaitS(), deferred.longestWaitS())
  return cost
}
