// A wait that ends early.
import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after so long, or when the signal fires; true if it was the time. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { signal }).catch(() => false)
}
