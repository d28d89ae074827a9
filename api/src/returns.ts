/** When those who are refused are to come back: spread over the time in which there is room for them. */
const RETRY_AFTER_MAX_S = 60
/** Rates are a little less than they promise: a job is fetched and delivered as well. */
const OPTIMISM = 1.2
/** Who is told in the middle of a spike comes back after its end: until then newcomers take what gets free. */
const SPIKE_GOES_ON_S = 1

export interface Returns {
  /**
   * Seconds until there is room for one more, after those who were sent away before.
   *
   * @param perSecond how many can be served
   * @param excess how many too many there are at the moment, with this one
   */
  afterS(perSecond: number, excess?: number): number
}

export function createReturns(now: () => number = () => performance.now()): Returns {
  /** Refused ones that were told when to come back, and are expected then. */
  let expected = 0
  let countedAt = now()
  return {
    afterS(perSecond, excess = 1) {
      if (perSecond === 0) return RETRY_AFTER_MAX_S
      const elapsedS = (now() - countedAt) / 1_000
      expected = Math.max(0, expected - elapsedS * perSecond) + 1
      countedAt = now()
      const roomInS = ((excess + expected) / perSecond) * OPTIMISM + SPIKE_GOES_ON_S
      return Math.min(RETRY_AFTER_MAX_S, Math.ceil(roomInS))
    },
  }
}
