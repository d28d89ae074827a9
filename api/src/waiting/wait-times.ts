/** How long a request is held, and the Retry-After of tickets. */

/** Bounds of the predicted Retry-After: clients must neither poll in a busy loop nor wait much longer than needed. */
const RETRY_AFTER_MIN_S = 1
const RETRY_AFTER_MAX_S = 10
/** Without workers: they may be back in a moment, and an early redemption only costs a request that is held. */
const RETRY_AFTER_UNKNOWN_S = 2

/** How long a request may be held, in milliseconds: as its client prefers, up to the limit. */
export function preferredWaitMs(preferredMs: number | undefined, limitMs: number): number {
  return Math.min(preferredMs ?? limitMs, limitMs)
}

/**
 * The rest of a wait when the job has been added, in milliseconds. The time before counts: it can be two seconds and more when Redis
 * had to be reconnected. 0, which means a ticket at once, stays 0; other waits stay above 0.
 */
export function remainingWaitMs(waitMs: number, elapsedMs: number): number {
  return waitMs === 0 ? 0 : Math.max(1, waitMs - elapsedMs)
}

/** The Retry-After of a ticket, in seconds. It must end before the ticket expires. */
export function ticketRetryAfterS(times: { predictedMs: number; ticketLeftMs: number }): number {
  const predictedS = Math.ceil(times.predictedMs / 1_000)
  const expectedS = Number.isFinite(predictedS) ? Math.min(RETRY_AFTER_MAX_S, predictedS) : RETRY_AFTER_UNKNOWN_S
  const lastS = Math.floor(times.ticketLeftMs / 1_000) - 1
  return Math.max(RETRY_AFTER_MIN_S, Math.min(expectedS, lastS))
}
