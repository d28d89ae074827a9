/** Pauses between requests, in milliseconds: never shorter than the gateway asks, and with jitter so that clients do not retry together. */
import type { Answer } from './send.js'

/** Whatever the server says, requests are at least this far apart. */
export const LEAST_MS = 1_000
/** The longest pause before a ticket is redeemed: redeeming early is harmless, redeeming after the expiry is not. */
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

/** The pause until `redeemAt` of a stored ticket (epoch milliseconds); bounded, because the clock may have been changed since. */
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
