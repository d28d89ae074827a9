/** Waiting that ends. */
import { setTimeout as sleep } from 'node:timers/promises'

/** What the work comes to, or undefined when the time is up first; rejects when the work fails in time. */
export async function within<T>(timeMs: number, work: Promise<T>): Promise<T | undefined> {
  const done = new AbortController()
  try {
    return await Promise.race([work, sleep(timeMs, undefined, { signal: done.signal }).catch(() => undefined)])
  } finally {
    done.abort()
  }
}
