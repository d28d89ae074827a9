/** Waiting that ends. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves when the work is done or the time is up, whichever comes first; rejects when the work fails in time. */
export async function within(timeMs: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  try {
    await Promise.race([work, sleep(timeMs, undefined, { signal: done.signal }).catch(() => undefined)])
  } finally {
    done.abort()
  }
}
