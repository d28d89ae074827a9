/**
 * The capacity that the line can count on while no worker is known: that of the last ones, less with each second. Workers that published
 * late are back in a moment, and those that an autoscaler starts are not there yet. Whoever counts on nothing refuses everybody, and
 * whoever counts on anything gives tickets that come to nothing.
 */

/** In milliseconds. */
const HALF_LIFE_MS = 15_000
/** What is counted on before any worker was known, and after all have long been gone, in jobs a second: about a core of argon2id. */
const UNKNOWN_PER_SECOND = 20

export interface LineCapacity {
  /** Takes a reading: what live workers can do together over the life of a ticket, in jobs a second; 0 without workers. */
  observe(perSecond: number): void
  /** Jobs a second; never 0. */
  current(): number
}

export function createLineCapacity(now: () => number = () => performance.now()): LineCapacity {
  let last: { perSecond: number; at: number } | undefined
  let isKnown = false
  return {
    observe(perSecond) {
      isKnown = perSecond > 0
      if (isKnown) last = { perSecond, at: now() }
    },
    current() {
      if (last === undefined) return UNKNOWN_PER_SECOND
      const { perSecond, at } = last
      if (isKnown) return perSecond
      return Math.max(Math.min(perSecond, UNKNOWN_PER_SECOND), perSecond * 0.5 ** ((now() - at) / HALF_LIFE_MS))
    },
  }
}
