/**
 * How many promised requests begin in an overload: anybody can claim to continue something. Without a limit, a flood of cheap ones makes
 * turns of the event loop long; then each answer of PostgreSQL comes late, and its connections are in use for longer: with 2,300 redemptions
 * of made-up tickets a second, 26 logins of 690 were left.
 */

/** Begin in a millisecond, beside as many as the gateway answers. */
const MORE_PER_MS = 0.2
/** The most at once. */
const MOST = 32

export interface PromisedShare {
  hasLeft(): boolean
  /** One has begun. */
  taken(): void
  refill(nowMs: number): void
}

/** @param perMs throughput, in requests a millisecond */
export function createPromisedShare(startMs: number, perMs: () => number): PromisedShare {
  let left = MOST
  let refilledMs = startMs
  return {
    hasLeft: () => left >= 1,
    taken() {
      left = Math.max(0, left - 1)
    },
    refill(nowMs) {
      left = Math.min(MOST, left + (perMs() + MORE_PER_MS) * (nowMs - refilledMs))
      refilledMs = nowMs
    },
  }
}
