/** How long a request is held, and after how many seconds the holder of a ticket comes back. */

/** Of a ticket: as predicted, but neither a busy loop nor so long that the ticket is forgotten. */
const RETRY_AFTER_MIN_S = 1
const RETRY_AFTER_MAX_S = 10
/** While no worker is known: they may be back in a moment, and asking early costs a request that is held. */
const RETRY_AFTER_UNKNOWN_S = 2

/** How long a client's request may be held, in milliseconds: as it prefers, up to the limit. */
export function preferredWaitMs(preferredMs: number | undefined, limitMs: number): number {
  return Math.min(preferredMs ?? limitMs, limitMs)
}

/**
 * What is left of a wait when its job has been added, in milliseconds. What it took to begin is part of the wait: two seconds and
 * more where Redis had to be found again. 0 stays 0, a ticket at once, and nothing else becomes that.
 */
export function remainingWaitMs(waitMs: number, elapsedMs: number): number {
  return waitMs === 0 ? 0 : Math.max(1, waitMs - elapsedMs)
}

/** Retry-After of a ticket. Whoever comes back when told to must find it good. */
export function ticketRetryAfterS(times: { predictedMs: number; ticketLeftMs: number }): number {
  const predictedS = Math.ceil(times.predictedMs / 1_000)
  const expectedS = Number.isFinite(predictedS) ? Math.min(RETRY_AFTER_MAX_S, predictedS) : RETRY_AFTER_UNKNOWN_S
  const lastS = Math.floor(times.ticketLeftMs / 1_000) - 1
  return Math.max(RETRY_AFTER_MIN_S, Math.min(expectedS, lastS))
}
