/** How long to wait between two requests, in milliseconds, and waiting. Never less than asked for, and never at the same time as all others. */
import type { Answer } from './send.js'

/** Whatever the server says, requests are at least this far apart. */
export const LEAST_MS = 1_000
/** To redeem a ticket earlier than told does no harm, and to miss its life does. */
const TICKET_MOST_MS = 30_000
/** Of the backoff where nothing was told. */
const BACKOFF_MOST_MS = 10_000

/** @param failures requests in a row that got no ticket and no Retry-After */
export function pauseAfter({ status, retryAfterMs }: Answer, failures: number, random = Math.random): number {
  if (retryAfterMs === undefined) {
    return LEAST_MS + random() * Math.min(LEAST_MS * 2 ** failures, BACKOFF_MOST_MS)
  }
  // Those that hold tickets were told different times. Those that were refused together were told the same one.
  return status === 202
    ? Math.min(Math.max(retryAfterMs, LEAST_MS), TICKET_MOST_MS) * (1 + random() / 4)
    : Math.max(retryAfterMs, LEAST_MS) * (1 + random() / 2)
}

/** Until a ticket may be redeemed that was kept with this time, in epoch milliseconds. Clocks are set. */
export function pauseUntil(redeemAt: number): number {
  return Math.min(Math.max(redeemAt - Date.now(), 0), TICKET_MOST_MS)
}

/** Rejects with the reason of the signal. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}
