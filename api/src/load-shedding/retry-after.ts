/** Retry-After: refused clients are told to come back spread over the time in which there will be room for them. */
const RETRY_AFTER_MAX_S = 60
/** Measured rates promise a little too much, because a job is fetched and delivered as well. */
const CAPACITY_OVERHEAD = 1.2
/** Seconds that a spike is taken to last from here: until its end, new clients take the room that becomes free. */
const SPIKE_GOES_ON_S = 1

export interface Returns {
  /**
   * Seconds until there is room for one more, behind the clients that were refused before.
   *
   * @param perSecond how many can be served
   * @param excess how many too many there are at the moment, with this one
   */
  afterS(perSecond: number, excess?: number): number
}

export function createReturns(now: () => number = () => performance.now()): Returns {
  /** Refused clients that are still to come back. */
  let expected = 0
  let countedAt = now()
  return {
    afterS(perSecond, excess = 1) {
      if (perSecond === 0) return RETRY_AFTER_MAX_S
      const elapsedS = (now() - countedAt) / 1_000
      expected = Math.max(0, expected - elapsedS * perSecond) + 1
      countedAt = now()
      const roomInS = ((excess + expected) / perSecond) * CAPACITY_OVERHEAD + SPIKE_GOES_ON_S
      return Math.min(RETRY_AFTER_MAX_S, Math.ceil(roomInS))
    },
  }
}
