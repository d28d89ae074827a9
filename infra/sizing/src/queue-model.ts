// How long a login waits for a slot: M/D/c. Logins come at random (Poisson), a hash always takes the same time (D), and there
// are c slots for one queue. The tail of the waits falls off exponentially, and how fast is exact: with hashes of one length
// every slot takes each c-th login, which makes it E_c/D/1, whose waits decay with the root of (λ / (λ + θ))^c · e^(θD) = 1.
// The start of the tail is taken from Erlang's C formula, the chance to wait at all if hashes were of random length. Together
// they are within a tenth of the simulated 99th percentile (test/queue-model.test.ts).

export interface Station {
  /** Logins a second. */
  perSecond: number
  /** How long a login keeps a slot: the hash, and the time between two hashes. */
  slotMs: number
  slots: number
}

/** The share of the slots that is busy; from 1 on the queue grows without end. */
export function utilization({ perSecond, slotMs, slots }: Station): number {
  return (perSecond * slotMs) / 1_000 / slots
}

/** Erlang's C: the chance that a login finds all slots busy. */
export function chanceOfWaiting(station: Station): number {
  const { perSecond, slotMs, slots } = station
  const busy = utilization(station)
  if (busy >= 1) return 1
  const offered = (perSecond * slotMs) / 1_000
  if (offered === 0) return 0
  // Erlang's B by its recursion, which neither overflows nor loses digits.
  let blocked = 1
  for (let slot = 1; slot <= slots; slot += 1) blocked = (offered * blocked) / (slot + offered * blocked)
  return blocked / (1 - busy * (1 - blocked))
}

/** How fast the tail of the waits falls off, per millisecond. */
function decayPerMs({ perSecond, slotMs, slots }: Station): number {
  const rate = perSecond / 1_000
  const excess = (theta: number): number => slots * Math.log1p(theta / rate) - theta * slotMs
  // Positive up to the root and negative beyond it.
  let low = 0
  let high = rate
  while (excess(high) > 0) high *= 2
  for (let step = 0; step < 80; step += 1) {
    const middle = (low + high) / 2
    if (excess(middle) > 0) low = middle
    else high = middle
  }
  return low
}

/** The wait in milliseconds that this share of the logins (0.99) stays below; Infinity when the queue grows without end. */
export function waitQuantileMs(station: Station, quantile: number): number {
  if (utilization(station) >= 1) return Number.POSITIVE_INFINITY
  const waiting = chanceOfWaiting(station)
  if (waiting <= 1 - quantile) return 0
  return Math.log(waiting / (1 - quantile)) / decayPerMs(station)
}

/** The fewest slots with which this share of the logins waits no longer than this. */
export function slotsFor(demand: Omit<Station, 'slots'>, waitMs: number, quantile: number): number {
  let slots = Math.floor((demand.perSecond * demand.slotMs) / 1_000) + 1
  while (waitQuantileMs({ ...demand, slots }, quantile) > waitMs) slots += 1
  return slots
}
