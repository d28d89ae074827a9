/**
 * When a refusal is answered. A refusal costs about a thirteenth of a login: clients that retry at once, on thousands of connections,
 * took a quarter of the gateway's time. So fewer are answered than requests are processed, until the delay is at its longest.
 */

/** In milliseconds. */
const DELAY_MS = 500
const LONGEST_DELAY_MS = 3_000
/** Refusals for each request that is processed. */
const SHARE = 0.5
/** The lowest limit of refusals a second, because the throughput is unknown when a burst begins. */
const LEAST_PER_SECOND = 100

/**
 * @param perSecond recent throughput, in requests a second
 * @returns the time at which a request refused at `nowMs` is answered, in milliseconds: never before an earlier refusal
 */
export function createRefusalPace(perSecond: () => number): (nowMs: number) => number {
  let lastDueMs = 0
  return (nowMs) => {
    const intervalMs = 1_000 / Math.max(LEAST_PER_SECOND, perSecond() * SHARE)
    lastDueMs = Math.min(nowMs + LONGEST_DELAY_MS, Math.max(nowMs + DELAY_MS, lastDueMs + intervalMs))
    return lastDueMs
  }
}
