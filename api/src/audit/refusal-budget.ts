/** How many refusals, and events of no account, a gateway records one by one: anyone can cause them, and a flood must not fill the disk. */

/** Refusals at once, and refusals a second of a flood that lasts: 864,000 rows a day, some 220 MB. */
const BURST = 1_000
const PER_SECOND = 10

/** Returns a function that takes one from the budget, and says whether there was one left. */
export function createRefusalBudget(now: () => number = () => performance.now()): () => boolean {
  let left = BURST
  let at = now()
  return () => {
    left = Math.min(BURST, left + ((now() - at) / 1_000) * PER_SECOND)
    at = now()
    if (left < 1) return false
    left -= 1
    return true
  }
}
