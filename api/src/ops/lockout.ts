/**
 * Slows down who guesses: an address is locked out after a few failures within a minute, and after many failures from
 * anywhere so is every address that has not logged in before, because there is one password for all of them. Whoever did log
 * in keeps being let in, so that guessing does not shut operators out just then. Addresses are those of the connection:
 * headers that name another one are not believed.
 */

const WINDOW_MS = 60_000
const FAILURES_PER_ADDRESS = 10
const FAILURES_OVERALL = 60
/** Addresses that have logged in and are remembered. */
const KNOWN_MAX = 100

export interface Lockout {
  failed(address: string): void
  succeeded(address: string): void
  /** Milliseconds until this address may try again; 0 when it may now. */
  remainingMs(address: string): number
}

export function createLockout(now: () => number = () => performance.now()): Lockout {
  // Never longer than the overall limit and one address's: once locked out, nothing is tried and nothing fails.
  let failures: { address: string; at: number }[] = []
  const known = new Set<string>()

  function untilBelow(counted: { at: number }[], limit: number): number {
    const decisive = counted.at(-limit)
    return decisive === undefined ? 0 : decisive.at + WINDOW_MS - now()
  }

  return {
    failed: (address) => failures.push({ address, at: now() }),
    succeeded(address) {
      known.delete(address)
      known.add(address)
      const [oldest] = known
      if (known.size > KNOWN_MAX && oldest !== undefined) known.delete(oldest)
    },
    remainingMs(address) {
      failures = failures.filter(({ at }) => at + WINDOW_MS > now())
      const own = failures.filter((failure) => failure.address === address)
      return Math.max(
        untilBelow(own, FAILURES_PER_ADDRESS),
        known.has(address) ? 0 : untilBelow(failures, FAILURES_OVERALL),
      )
    },
  }
}
