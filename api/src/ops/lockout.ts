/**
 * Lock-out against password guessing on the ops port. An address is locked out after a few failures within a minute. After many failures
 * from all addresses together, every address that has not logged in before is locked out, because all share one password. Known addresses
 * stay allowed: guessing does not lock out operators. A header is believed about the address only when a proxy of TRUST_PROXY sent it.
 */

const WINDOW_MS = 60_000
const FAILURES_PER_ADDRESS = 10
const FAILURES_OVERALL = 60
/** The number of known addresses to remember. */
const KNOWN_MAX = 100

export interface Lockout {
  failed(address: string): void
  succeeded(address: string): void
  /** Milliseconds until this address may try again; 0 when it may now. */
  remainingMs(address: string): number
}

export function createLockout(now: () => number = () => performance.now()): Lockout {
  // Its length is bounded by the two limits: a locked-out address cannot add failures.
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
