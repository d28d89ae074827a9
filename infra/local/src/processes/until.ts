// Polls for a state instead of sleeping.
import { setTimeout as sleep } from 'node:timers/promises'

const pollMs = 20

/**
 * Reads a state until it is truthy and returns it. A read that throws counts as "not yet". After
 * timeoutMs [60 s: a busy machine is slow] it rejects, naming the awaited state and the last error.
 */
export async function until<T>(
  read: () => T | Promise<T>,
  { timeoutMs = 60_000, what = 'the awaited state' }: { timeoutMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const deadline = Date.now() + timeoutMs
  let lastError: unknown
  while (Date.now() < deadline) {
    try {
      const value = await read()
      if (value) return value
    } catch (error) {
      lastError = error
    }
    await sleep(pollMs)
  }
  throw new Error(`${what} did not come within ${timeoutMs} ms`, { cause: lastError })
}
