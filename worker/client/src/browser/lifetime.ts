/** The time that a call may take. */
import type { WaitOptions } from './options.js'
import { SpillwayError } from './spillway-error.js'

const GIVE_UP_AFTER_MS = 600_000
/** The longest delay that setTimeout supports. */
const TIMER_MOST_MS = 2 ** 31 - 1

export interface Life {
  /** Fires with the caller's signal, or when it is time to give up. */
  signal: AbortSignal
  leftMs(): number
}

/** Runs a call, and lets go of the caller's signal when it has ended. */
export async function lifetime<T>(
  { signal, giveUpAfterMs = GIVE_UP_AFTER_MS }: WaitOptions,
  call: (life: Life) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const end = new AbortController()
  const abort = () => end.abort(signal?.reason)
  signal?.addEventListener('abort', abort)
  const endMs = performance.now() + giveUpAfterMs
  const timer = setTimeout(() => end.abort(new SpillwayError('gave_up')), Math.min(giveUpAfterMs, TIMER_MOST_MS))
  try {
    return await call({ signal: end.signal, leftMs: () => endMs - performance.now() })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
